package scenario

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"testing"
	"time"
)

// ledger is a file of lines that says what handlers did. Lines are appended by
// one small write each, so that processes can share it and a kill cuts none.
type ledger string

// entry is one thing that a handler did ("start", "end", "fail", "effect"), or that a
// worker said of a job ("acked", "lost", "stuck") or of its broker (the kind of the
// event).
type entry struct {
	What    string
	Subject string
	Job     string
	PID     int
	Attempt int
	Crashes int
	At      time.Time
}

func (l ledger) write(e entry) {
	e.PID, e.At = os.Getpid(), time.Now()
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	f, err := os.OpenFile(string(l), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

// read returns all entries of a kind, of all kinds for "".
func (l ledger) read(t *testing.T, what string) []entry {
	t.Helper()
	return l.readFrom(t, 0, what)
}

// size is where the next entry is written.
func (l ledger) size(t *testing.T) int64 {
	t.Helper()
	info, err := os.Stat(string(l))
	if os.IsNotExist(err) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// readFrom returns the entries of a kind from a place on.
func (l ledger) readFrom(t *testing.T, place int64, what string) []entry {
	t.Helper()
	f, err := os.Open(string(l))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(place, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	var entries []entry
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("ledger: %v: %s", err, lines.Text())
		}
		if what == "" || e.What == what {
			entries = append(entries, e)
		}
	}
	return entries
}

// of returns the entries of a kind about one subject.
func (l ledger) of(t *testing.T, what, subject string) []entry {
	t.Helper()
	var entries []entry
	for _, e := range l.read(t, what) {
		if e.Subject == subject {
			entries = append(entries, e)
		}
	}
	return entries
}

// bySubject counts the entries of a kind.
func (l ledger) bySubject(t *testing.T, what string) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	for _, e := range l.read(t, what) {
		counts[e.Subject]++
	}
	return counts
}

// startedAfter reports whether what an entry is about was started later.
func (l ledger) startedAfter(t *testing.T, e entry) bool {
	t.Helper()
	for _, start := range l.of(t, "start", e.Subject) {
		if start.At.After(e.At) {
			return true
		}
	}
	return false
}

// most returns how many handlers of a process ran at the same time at most.
func (l ledger) most(t *testing.T, pid int) int {
	t.Helper()
	running, most := 0, 0
	for _, e := range l.read(t, "") {
		if e.PID != pid {
			continue
		}
		switch e.What {
		case "start":
			running++
		case "end", "fail":
			running--
		}
		most = max(most, running)
	}
	return most
}

// checkDoneIsDone fails the test if a job was started after a worker knew that its
// end was on record. It holds in every scenario, but where a broker that was only sent
// the end has died.
func (l ledger) checkDoneIsDone(t *testing.T) {
	t.Helper()
	acked := make(map[string]time.Time)
	for _, e := range l.read(t, "acked") {
		acked[e.Job] = e.At
	}
	for _, start := range l.read(t, "start") {
		if at, ok := acked[start.Job]; ok && start.At.After(at) {
			t.Errorf("job %s (%s) was started again %v after its end was on record", start.Job, start.Subject, start.At.Sub(at))
		}
	}
}
