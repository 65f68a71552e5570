package tracker

import "testing"

func TestTheOffsetMovesThroughSettledRecordsOnly(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 5, "")
	h.begin(5)
	for _, step := range []struct {
		settled, offset int64
	}{{3, 0}, {1, 0}, {0, 2}, {4, 2}, {2, 5}} {
		h.settle(step.settled)
		h.commit(0, 0)
		if h.record.Offset != step.offset {
			t.Errorf("with %d settled the offset is %d, want %d", step.settled, h.record.Offset, step.offset)
		}
	}
	h.expect("unsettled", h.Unsettled(), 0)
	h.expect("committed", h.Committed(), int64(5))
}

func TestWhatIsSettledIsNotDeliveredAgain(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 10, "")
	h.begin(10)
	h.settle(2, 3, 4, 7, 9)
	h.commit(0, 0)
	h.load(Config{})
	h.expect("kept after a crash", h.add(0, 10, ""), []int64{0, 1, 5, 6, 8})
	h.expect("next", h.Next(), int64(10))
}

func TestASettlementIsFinalWhenACommitThatHasItIsAccepted(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 3, "")
	h.begin(3)
	first := h.settle(1)
	sent, _ := h.Commit(0, 0)
	second := h.settle(2)
	if c, ok := h.Commit(0, 0); ok {
		t.Fatalf("commit %+v was made while another was on its way", c)
	}
	h.Refused(sent.Number)
	h.expect("final after a refusal", []bool{h.Final(first), h.Final(second)}, []bool{false, false})
	sent, _ = h.Commit(0, 0)
	third := h.settle(0)
	h.Unknown(sent.Number)
	h.expect("final after no answer", []bool{h.Final(first), h.Final(second)}, []bool{false, false})
	sent, _ = h.Commit(0, 0)
	h.Accepted(sent.Number)
	h.expect("final", []bool{h.Final(first), h.Final(second), h.Final(third)}, []bool{true, true, true})
	h.expect("offset", sent.Offset, int64(3))
}

func TestARefusedCommitIsSaidAgain(t *testing.T) {
	t.Parallel()
	for _, answer := range []func(*Tracker, int64){(*Tracker).Refused, (*Tracker).Unknown} {
		h := take(t, Config{})
		h.add(0, 1, "")
		h.begin(1)
		n := h.settle(0)
		c, _ := h.Commit(0, 0)
		answer(h.Tracker, c.Number)
		h.expect("commits", h.commit(0, 0), 1)
		h.expect("final", h.Final(n), true)
	}
}

func TestAnAnswerToAnotherCommitIsNoAnswer(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 1, "")
	c, _ := h.Commit(0, 1)
	h.Accepted(c.Number + 1)
	h.Accepted(c.Number - 1)
	h.expect("started", h.start(0, 1), []int64(nil))
	h.Accepted(c.Number)
	h.expect("started", h.start(0, 1), []int64{0})
}

func TestNothingStartsBeforeACommitSaysSo(t *testing.T) {
	t.Parallel()
	for _, answer := range []func(*Tracker, int64){(*Tracker).Refused, (*Tracker).Unknown} {
		h := take(t, Config{})
		h.add(0, 2, "")
		h.expect("started before", h.start(0, 2), []int64(nil))
		c, ok := h.Commit(0, 2)
		if !ok {
			t.Fatal("no commit, although records wait for it")
		}
		h.expect("started meanwhile", h.start(0, 2), []int64(nil))
		answer(h.Tracker, c.Number)
		h.expect("started without", h.start(0, 2), []int64(nil))
		h.expect("started after", h.begin(2), []int64{0, 1})
	}
}

func TestTheMarkMovesInChunksAndNotPastTheLastRecord(t *testing.T) {
	t.Parallel()
	h := take(t, Config{Chunk: 10})
	h.add(0, 15, "")
	h.expect("commits", h.commit(0, 4), 1)
	h.expect("mark", h.mark, int64(10))
	h.expect("started", h.start(0, 8), []int64{0, 1, 2, 3, 4, 5, 6, 7})
	h.expect("commits with two that may start, for two slots", h.commit(0, 2), 0)
	h.expect("commits for four", h.commit(0, 4), 1)
	h.expect("mark", h.mark, int64(15))
	h.settle(0)
	h.commit(0, 0)
	h.expect("mark", h.mark, int64(15))
	h.add(15, 100, "")
	h.settle(1)
	h.commit(0, 0)
	h.expect("mark", h.mark, int64(18))
}

func TestWithNothingToSayThereIsNoCommit(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.expect("empty", h.commit(0, 10), 0)
	h.add(0, 3, "")
	h.expect("no slot", h.commit(0, 0), 0)
	h.expect("slots", h.commit(0, 3), 1)
	h.start(0, 3)
	h.expect("all run", h.commit(0, 3), 0)
	h.settle(0, 1, 2)
	h.expect("settled", h.commit(0, 3), 1)
	h.expect("empty again", h.commit(0, 3), 0)
}

func TestALateSettlementDoesNotTouchALaterRun(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 1, "k")
	h.begin(1)
	old := h.runs[0]
	if _, err := h.Release(old); err != nil {
		t.Fatal(err)
	}
	h.begin(1)
	for name, settle := range map[string]func(Run) (int64, error){
		"Settle": h.Settle, "Release": h.Release,
		"Again": func(r Run) (int64, error) { return h.Again(r, Counts{}, 0) },
	} {
		if _, err := settle(old); err != ErrNotRunning {
			t.Errorf("%s of the older run returns %v, want ErrNotRunning", name, err)
		}
		if _, err := settle(Run{}); err != ErrNotRunning {
			t.Errorf("%s of no run returns %v, want ErrNotRunning", name, err)
		}
	}
	h.settle(0)
	h.expect("unsettled", h.Unsettled(), 0)
}

func TestOffsetsWithoutRecords(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int64{{4, 30, 9}, {30, 9, 4}, {4, 9, 30}} {
		h := take(t, Config{Window: 100})
		for _, offset := range []int64{3, 4, 9, 30} {
			h.add(offset, offset+1, "")
		}
		h.begin(4)
		h.settle(order...)
		h.commit(0, 0)
		h.expect("offset", h.record.Offset, int64(3))
		h.expect("intervals", len(h.settled), 1)
		h.settle(3)
		h.commit(0, 0)
		h.expect("offset", h.record.Offset, int64(31))
		if got := h.Add(5000, ""); got != Kept {
			t.Errorf("the record after a gap that is larger than the window: %v, want Kept", got)
		}
		h.commit(0, 1)
		h.expect("offset", h.record.Offset, int64(5000))
	}
}

func TestWhatTheLogLost(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 10, "")
	h.begin(10)
	h.settle(5, 7)
	h.commit(0, 0)

	h.load(Config{})
	h.expect("lost", h.Skip(8), Lost{From: 0, To: 8, Unsettled: 6})
	h.expect("lost again", h.Skip(8), Lost{})
	h.add(8, 10, "")
	h.begin(2)
	h.expect("records that are here stay", h.Skip(12), Lost{From: 10, To: 12, Unsettled: 2})
	h.settle(8)
	h.commit(0, 0)
	h.expect("offset", h.record.Offset, int64(9))
	h.settle(9)
	h.commit(0, 0)
	h.expect("offset", h.record.Offset, int64(12))
}

func TestASlowRecordDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 1, "")
	h.begin(1)
	const many = 300_000
	for next := int64(1); next < many; next += 64 {
		h.add(next, next+64, "")
		for _, offset := range h.begin(aLot) {
			h.settle(offset)
			delete(h.runs, offset)
		}
	}
	h.commit(0, 0)
	h.expect("unsettled", h.Unsettled(), 1)
	h.expect("paused", h.Paused(), NotPaused)
	if n := len(h.record.Metadata); n > 40 {
		t.Errorf("metadata of %d bytes for one interval", n)
	}
	h.load(Config{})
	h.add(0, 1, "")
	if h.Next() < many {
		t.Errorf("the next owner reads on from %d, where all is settled up to %d", h.Next(), many)
	}
}

func TestAGapThatIsLargerThanTheWindow(t *testing.T) {
	t.Parallel()
	h := take(t, Config{Window: 4})
	h.add(0, 1, "")
	h.begin(1)
	h.expect("paused", h.Paused(), NotPaused)
	if got := h.Add(100, ""); got != Full {
		t.Fatalf("the record after the gap: %v, want Full", got)
	}
	h.expect("paused", h.Paused(), WindowFull)
	h.settle(0)
	h.expect("paused", h.Paused(), NotPaused)
	h.add(100, 101, "")
}

func TestANoteOnARecordThatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	for _, skip := range []bool{true, false} {
		h := take(t, Config{})
		h.add(0, 10, "k")
		h.begin(1)
		if _, err := h.Again(h.runs[0], Counts{Failures: 1}, 1000); err != nil {
			t.Fatal(err)
		}
		h.commit(0, 0)
		h.load(Config{})
		if skip {
			h.Skip(5)
		}
		h.add(5, 7, "k")
		h.expect("started", h.begin(aLot), []int64{5})
		h.settle(5)
		h.commit(0, 0)
		h.load(Config{})
		h.expect("next", h.Next(), int64(6))
		h.expect("space", h.space.reserved, 0)
	}
}

func TestTheWindowIsBounded(t *testing.T) {
	t.Parallel()
	h := take(t, Config{Window: 4})
	h.add(10, 14, "")
	if got := h.Add(14, ""); got != Full {
		t.Fatalf("the fifth record: %v, want Full", got)
	}
	h.expect("paused", h.Paused(), WindowFull)
	h.begin(4)
	h.settle(11, 12, 13)
	h.expect("paused", h.Paused(), WindowFull)
	h.settle(10)
	h.expect("paused", h.Paused(), NotPaused)
	h.add(14, 18, "")
}

func TestRecordsThatWereAddedAreNotAddedAgain(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 3, "")
	h.expect("kept", h.add(0, 4, ""), []int64{3})
	h.expect("unsettled", h.Unsettled(), 4)
}

func TestEmptyMetadataIsAnOffsetAlone(t *testing.T) {
	t.Parallel()
	tr, err := Load(Config{}, 77, "")
	if err != nil {
		t.Fatal(err)
	}
	if tr.Next() != 77 || tr.Committed() != 77 || tr.CrashLine() != 77 {
		t.Errorf("next %d, committed %d, crash line %d; want 77", tr.Next(), tr.Committed(), tr.CrashLine())
	}
}
