package tracker

import (
	"errors"
	"testing"
)

func TestACommitIsReadByThoseWhoOnlyLook(t *testing.T) {
	t.Parallel()
	tr := New(Config{Chunk: 4}, 100)
	for o := int64(100); o < 110; o++ {
		tr.Add(o, "key")
	}
	for range 3 { // 100 waits in its place after its run
		if c, ok := tr.Commit(0, 4); ok {
			tr.Accepted(c.Number)
		}
		if run, ok := tr.Start(0); ok {
			if _, err := tr.Again(run, Counts{Failures: 1}, 5000); err != nil {
				t.Fatal(err)
			}
		}
	}
	for o := int64(110); o < 114; o++ {
		tr.Add(o, "")
	}
	for range 4 { // 110 and the others run, and 111 to 113 are settled
		if c, ok := tr.Commit(0, 4); ok {
			tr.Accepted(c.Number)
		}
		for run, ok := tr.Start(0); ok; run, ok = tr.Start(0) {
			if run.Offset > 110 {
				if _, err := tr.Settle(run); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	last := tr.last
	for now, later := range map[int64]int64{0: 1, 4999: 1, 5000: 0} {
		s, err := Read(last.Offset, last.Metadata, now)
		if err != nil || last.Offset != 100 || s.Settled != 3 || s.Mark != 114 || s.Later != later {
			t.Errorf("at %d: commit of %d says %+v, %v; want 3 settled, mark 114, %d later", now, last.Offset, s, err, later)
		}
		for from, first := range map[int64]int64{100: 100, 110: 110, 111: 114, 113: 114, 114: 114} {
			if got := s.Unsettled(from); got != first {
				t.Errorf("the first that is not settled from %d on is %d, want %d", from, got, first)
			}
		}
	}
	if _, err := Read(last.Offset+1, last.Metadata, 0); !errors.Is(err, ErrForeign) {
		t.Errorf("Read at another offset: %v, want ErrForeign", err)
	}
	if s, err := Read(7, "", 0); err != nil || s.Mark != 7 || s.Settled != 0 || s.Later != 0 || s.Unsettled(7) != 7 {
		t.Errorf("Read of nothing but an offset: %+v, %v", s, err)
	}
}
