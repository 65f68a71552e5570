package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/backstage-go/backstage/internal/command"
)

// wanted is a dead letter that was asked for by name: by its address, by its job's
// id, or by whichever of both there is.
type wanted struct {
	text  string
	place string // "ids.txt:12", empty for an operand
	kind  wantedKind
}

type wantedKind int

const (
	byEither wantedKind = iota
	byAddress
	byJob
)

// wantedOf reads an id: address:17 and job:A-1 say which it is.
func wantedOf(text, place string) wanted {
	if address, ok := strings.CutPrefix(text, "address:"); ok {
		return wanted{address, place, byAddress}
	}
	if job, ok := strings.CutPrefix(text, "job:"); ok {
		return wanted{job, place, byJob}
	}
	return wanted{text, place, byEither}
}

// String is how messages name it.
func (w wanted) String() string {
	where := ""
	if w.place != "" {
		where = w.place + ": "
	}
	switch w.kind {
	case byAddress:
		return where + fmt.Sprintf("address %q", w.text)
	case byJob:
		return where + fmt.Sprintf("job %q", w.text)
	}
	return where + fmt.Sprintf("%q", w.text)
}

// longestID is more bytes than any id or address has.
const longestID = 1024

// readIDs reads ids from a file, or from standard input for "-": one a line, without
// blank lines and those that begin with "#". All bad lines are told at once.
func readIDs(name string, stdin io.Reader) ([]wanted, error) {
	in, shown := stdin, "standard input"
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("-ids: %w", err)
		}
		defer file.Close()
		in, shown = file, name
	}
	var ids []wanted
	var wrong []error
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		n++
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		place := fmt.Sprintf("%s:%d", shown, n)
		if why := noID(line); why != "" {
			wrong = append(wrong, fmt.Errorf("%s: %s", place, why))
			continue
		}
		ids = append(ids, wantedOf(line, place))
	}
	if err := lines.Err(); err != nil {
		wrong = append(wrong, fmt.Errorf("%s:%d: %w", shown, n+1, err))
	}
	if wrong != nil {
		return nil, command.Usagef("%v", errors.Join(wrong...))
	}
	return ids, nil
}

// noID says why a line can be no id.
func noID(line string) string {
	switch {
	case len(line) > longestID:
		return fmt.Sprintf("%d bytes are too many for an id", len(line))
	case strings.ContainsAny(line, " \t"):
		return fmt.Sprintf("%q is not one id", cut(line, 60))
	case clean(line) != line:
		return fmt.Sprintf("%q has characters that no id has", cut(line, 60))
	case line == "job:" || line == "address:":
		return fmt.Sprintf("no id after %q", line)
	}
	return ""
}
