package tracker

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const aLot = math.MaxInt32

// hand is a tracker with a group that takes its commits.
type hand struct {
	*Tracker
	t      *testing.T
	owner  uint32
	record Commit
	runs   map[int64]Run
}

func take(t *testing.T, config Config) *hand {
	t.Helper()
	h := &hand{t: t}
	h.load(config)
	return h
}

// load has another worker begin with what is on record.
func (h *hand) load(config Config) {
	h.t.Helper()
	h.owner++
	config.Owner = h.owner
	next, err := Load(config, h.record.Offset, h.record.Metadata)
	if err != nil {
		h.t.Fatalf("Load(%d, %q): %v", h.record.Offset, h.record.Metadata, err)
	}
	h.Tracker, h.runs = next, map[int64]Run{}
}

// add adds the records from one offset to another, and returns which were kept.
func (h *hand) add(from, to int64, key string) (kept []int64) {
	h.t.Helper()
	for offset := from; offset < to; offset++ {
		switch h.Add(offset, key) {
		case Kept:
			kept = append(kept, offset)
		case Full:
			h.t.Fatalf("no room for record %d", offset)
		}
	}
	return kept
}

// commit commits as long as there is something to say, and returns how often there was.
func (h *hand) commit(now int64, slots int) (n int) {
	h.t.Helper()
	for ; n < 5; n++ {
		c, ok := h.Commit(now, slots)
		if !ok {
			return n
		}
		h.record = c
		h.Accepted(c.Number)
	}
	h.t.Fatal("commits without an end")
	return n
}

// start starts up to n records, and returns their offsets.
func (h *hand) start(now int64, n int) (offsets []int64) {
	for ; n > 0; n-- {
		run, ok := h.Start(now)
		if !ok {
			break
		}
		h.runs[run.Offset] = run
		offsets = append(offsets, run.Offset)
	}
	return offsets
}

// begin commits and starts, up to n records.
func (h *hand) begin(n int) []int64 {
	h.t.Helper()
	h.commit(0, n)
	return h.start(0, n)
}

func (h *hand) settle(offsets ...int64) (commit int64) {
	h.t.Helper()
	for _, offset := range offsets {
		var err error
		if commit, err = h.Settle(h.runs[offset]); err != nil {
			h.t.Fatalf("settling %d: %v", offset, err)
		}
	}
	return commit
}

// crashes adds all records again and returns the crashes of those that start now.
func (h *hand) crashes(to int64) map[int64]int32 {
	h.t.Helper()
	h.add(h.Next(), to, "")
	found := map[int64]int32{}
	for _, offset := range h.begin(aLot) {
		found[offset] = h.runs[offset].Crashes
	}
	return found
}

func (h *hand) expect(what string, got, want any) {
	h.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
