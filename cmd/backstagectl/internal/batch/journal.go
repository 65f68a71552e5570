package batch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	journalKind    = "batch of dead letters"
	journalVersion = 1
	journalBegins  = `{"backstagectl":"` + journalKind + `",`
)

// ErrNoPlan is returned by Open for a file that is empty, or whose plan was not
// written to its end, so that nothing was done by it.
var ErrNoPlan = errors.New("it has no complete plan")

// header is a journal's first line. Its letters follow, one a line, then results.
type header struct {
	Kind    string `json:"backstagectl"`
	Version int    `json:"version"`
	Count   int    `json:"letters"`
	Plan
}

// Journal is a plan in a file, with what became of its letters so far.
type Journal struct {
	// Plan is the fixed set.
	Plan Plan
	// Results are the last of each letter that was tried, by address.
	Results map[string]Result

	file *os.File
}

// Create makes a journal of a plan. It returns an error that is fs.ErrExist if the
// file has a plan already; one without a complete plan it replaces.
func Create(path string, plan Plan) (*Journal, error) {
	flags := os.O_WRONLY | os.O_APPEND
	switch there, err := Open(path); {
	case err == nil:
		return nil, fmt.Errorf("journal %s: %w", path, errors.Join(fs.ErrExist, there.Close()))
	case errors.Is(err, fs.ErrNotExist):
		flags |= os.O_CREATE | os.O_EXCL
	case errors.Is(err, ErrNoPlan):
		flags |= os.O_TRUNC
	default:
		return nil, err
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{Plan: plan, Results: map[string]Result{}, file: file}
	if err := j.writePlan(); err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, errors.Join(err, file.Close()))
	}
	syncFolder(filepath.Dir(path))
	return j, nil
}

func (j *Journal) writePlan() error {
	lines := make([]any, 0, len(j.Plan.Letters)+1)
	lines = append(lines, header{journalKind, journalVersion, len(j.Plan.Letters), j.Plan})
	for i := range j.Plan.Letters {
		lines = append(lines, &j.Plan.Letters[i])
	}
	return j.append(lines)
}

// syncFolder makes a new file's name durable, on systems that have that.
func syncFolder(dir string) {
	if f, err := os.Open(dir); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}

// Open reads a journal, to go on with it. It returns fs.ErrNotExist, ErrNoPlan, or
// what is wrong with the file. What was not written to its end by a process that
// was killed is cut off.
func Open(path string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{Results: map[string]Result{}, file: file}
	if err := j.read(); err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, errors.Join(err, file.Close()))
	}
	return j, nil
}

func (j *Journal) read() error {
	lines := &lineReader{r: bufio.NewReader(j.file)}
	var h header
	switch err := lines.next(&h); {
	case errors.Is(err, io.EOF) && strings.HasPrefix(journalBegins, lines.torn[:min(len(lines.torn), len(journalBegins))]):
		return ErrNoPlan
	case err != nil || h.Kind != journalKind:
		return errors.New("it is no journal, and was left alone")
	case h.Version != journalVersion:
		return fmt.Errorf("it has version %d, and this program knows %d", h.Version, journalVersion)
	}
	j.Plan = h.Plan
	for range h.Count {
		var l Letter
		err := lines.next(&l)
		if errors.Is(err, io.EOF) {
			return ErrNoPlan
		}
		if err != nil {
			return err
		}
		j.Plan.Letters = append(j.Plan.Letters, l)
	}
	for {
		var r Result
		err := lines.next(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		j.keep(r)
	}
	if lines.torn != "" {
		return os.Truncate(j.file.Name(), lines.size)
	}
	return nil
}

// keep remembers the last result of a letter; one that is final stays, because two
// runs may have written it, and the second found the letter gone.
func (j *Journal) keep(r Result) {
	if !j.Results[r.Address].Outcome.Final() {
		j.Results[r.Address] = r
	}
}

// Record appends results and returns when they are on the disk.
func (j *Journal) Record(results []Result) error {
	lines := make([]any, len(results))
	for i, r := range results {
		lines[i] = r
		j.keep(r)
	}
	if err := j.append(lines); err != nil {
		return fmt.Errorf("journal %s: %w", j.file.Name(), err)
	}
	return nil
}

// append writes lines in one call, so that those of two processes do not mix.
func (j *Journal) append(lines []any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	for _, line := range lines {
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	if _, err := j.file.Write(b.Bytes()); err != nil {
		return err
	}
	return j.file.Sync()
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// lineReader reads lines of JSON, and counts what was read whole.
type lineReader struct {
	r    *bufio.Reader
	n    int    // the line's number
	size int64  // of the whole lines so far
	torn string // the last line, if it has no end
}

// next reads one line. A last line without an end is none: io.EOF.
func (l *lineReader) next(into any) error {
	line, err := l.r.ReadBytes('\n')
	if err != nil {
		l.torn = string(line)
		return err
	}
	l.n++
	l.size += int64(len(line))
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("line %d is no line of a journal: %w", l.n, err)
	}
	return nil
}
