package tracker

import "testing"

func TestACrashCountsForWhatIsUnsettledBelowTheMark(t *testing.T) {
	t.Parallel()
	h := take(t, Config{Chunk: 4})
	h.add(0, 8, "")
	h.commit(0, 2)
	h.start(0, 2)
	h.settle(1)
	c, _ := h.Commit(0, 0) // makes the mark 6, and is lost
	h.Unknown(c.Number)

	h.load(Config{Chunk: 4})
	h.expect("crashes", h.crashes(8), map[int64]int32{0: 1, 1: 1, 2: 1, 3: 1, 4: 0, 5: 0, 6: 0, 7: 0})
}

func TestOnlyRecordedStartsCountTwice(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 10, "")
	h.begin(10)
	for crash := int32(1); crash <= 5; crash++ {
		h.load(Config{})
		h.add(0, 10, "")
		h.commit(0, 1)
		h.expect("started", h.start(0, 10), []int64{0})
		h.expect("crashes of the one that runs each time", h.runs[0].Crashes, crash)
	}
	h.load(Config{})
	want := map[int64]int32{0: 6}
	for offset := int64(1); offset < 10; offset++ {
		want[offset] = 1
	}
	h.expect("crashes", h.crashes(10), want)
}

func TestAWorkerThatDiesBeforeItsFirstCommitCountsNothing(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 2, "")
	h.begin(2)
	for range 3 {
		h.load(Config{})
		h.add(0, 2, "")
		h.expect("started", h.start(0, 2), []int64(nil))
		h.Commit(0, 2)
	}
	h.load(Config{})
	h.expect("crashes", h.crashes(2), map[int64]int32{0: 1, 1: 1})
}

func TestARefusedStartIsNotCounted(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 1, "")
	h.begin(1)
	h.load(Config{})
	h.add(0, 1, "")
	for _, answer := range []func(*Tracker, int64){(*Tracker).Refused, (*Tracker).Unknown, (*Tracker).Refused} {
		c, ok := h.Commit(0, 1)
		if !ok {
			t.Fatal("the start is not asked for again")
		}
		answer(h.Tracker, c.Number)
		h.expect("started", h.start(0, 1), []int64(nil))
	}
	h.expect("started", h.begin(1), []int64{0})
	h.expect("crashes", h.runs[0].Crashes, int32(1))
}

func TestAStartThatWasRefusedIsNotWrittenAgainUnasked(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 2, "")
	h.begin(2)
	h.load(Config{})
	h.add(0, 2, "")
	h.expect("started", h.begin(1), []int64{0})
	c, _ := h.Commit(0, 1)
	h.Refused(c.Number)
	h.settle(0)
	h.commit(0, 0)
	h.load(Config{})
	h.expect("crashes", h.crashes(2), map[int64]int32{1: 1})
}

func TestStartsArePutOnRecordInTheirTurn(t *testing.T) {
	t.Parallel()
	for slots, crashes := range map[int]map[int64]int32{1: {1: 1, 2: 0}, 2: {1: 1, 2: 1}} {
		h := take(t, Config{})
		h.add(0, 2, "a")
		h.add(2, 3, "")
		h.begin(aLot)
		h.settle(0)
		h.commit(0, 0) // now the second of the key is the next
		if _, err := h.Release(h.runs[2]); err != nil {
			t.Fatal(err)
		}
		h.commit(0, slots)
		h.expect("started", len(h.start(0, aLot)), slots)
		h.load(Config{})
		h.expect("crashes", h.crashes(3), crashes)
	}
}

func TestWhatWasReleasedAfterACrashCountsNothing(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 1, "")
	h.begin(1)
	for range 3 {
		h.load(Config{})
		h.add(0, 1, "")
		h.begin(1)
		h.expect("crashes", h.runs[0].Crashes, int32(1))
		if _, err := h.Release(h.runs[0]); err != nil {
			t.Fatal(err)
		}
		h.commit(0, 0)
	}
}

func TestWhatWasReleasedCountsNothing(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 3, "")
	h.begin(3)
	n, err := h.Release(h.runs[1])
	if err != nil {
		t.Fatal(err)
	}
	h.commit(0, 0)
	h.expect("final", h.Final(n), true)
	h.load(Config{})
	h.expect("crashes", h.crashes(3), map[int64]int32{0: 1, 1: 0, 2: 1})
}

func TestAHandOverCountsNothing(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 6, "")
	h.begin(3)
	h.settle(1)
	h.Leave()
	h.expect("started while leaving", h.start(0, 6), []int64(nil))
	h.expect("left before the commit", h.Left(), false)
	h.commit(0, 6)
	h.expect("left", h.Left(), true)

	h.load(Config{})
	h.expect("crashes", h.crashes(6), map[int64]int32{0: 0, 2: 0, 3: 0, 4: 0, 5: 0})
}

func TestStartsOnRecordThatDidNotHappenAreHandedOver(t *testing.T) {
	t.Parallel()
	for _, accepted := range []bool{true, false} { // before the partition is to be handed over
		h := take(t, Config{})
		h.add(0, 2, "")
		h.begin(2)
		h.load(Config{})
		h.add(0, 2, "")
		c, _ := h.Commit(0, 2)
		if accepted {
			h.Accepted(c.Number)
		}
		h.Leave()
		h.Accepted(c.Number)
		h.expect("started", h.start(0, 2), []int64(nil))
		h.commit(0, 2)
		h.expect("left", h.Left(), true)
		h.load(Config{})
		h.expect("crashes", h.crashes(2), map[int64]int32{0: 1, 1: 1})
	}
}

func TestARunMayBeSettledWhileItIsHandedOver(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 3, "")
	h.begin(3)
	h.Leave()
	h.commit(0, 0)
	n := h.settle(2)
	h.expect("left", h.Left(), false)
	h.commit(0, 0)
	h.expect("final", h.Final(n), true)
	h.load(Config{})
	h.expect("crashes", h.crashes(3), map[int64]int32{0: 0, 1: 0})
}

// A job that was handed over while it ran, and is started by the next owner: the death
// of the first owner is nobody's business, that of the second counts.
func TestTheNextOwnersCrashCounts(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 3, "")
	h.begin(1)
	h.Leave()
	h.commit(0, 0)

	h.load(Config{})
	h.add(0, 3, "")
	h.expect("started without a commit", h.start(0, 1), []int64(nil))
	h.expect("started", h.begin(1), []int64{0})
	h.expect("crashes", h.runs[0].Crashes, int32(0))

	h.load(Config{})
	h.expect("crashes", h.crashes(3)[0], int32(1))
}

func TestAHandOverThatIsNotOnRecordIsACrash(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 1, "")
	h.begin(1)
	h.Leave()
	c, _ := h.Commit(0, 0)
	h.Refused(c.Number)
	h.load(Config{})
	h.expect("crashes", h.crashes(1), map[int64]int32{0: 1})
}

// A job that kills its worker each time after it was handed over is caught in the end.
func TestAJobCannotHideBehindHandOvers(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	starts := 0
	for {
		h.add(0, 1, "")
		h.begin(1)
		if h.runs[0].Crashes == 5 {
			break
		}
		if starts++; starts > 100 {
			t.Fatal("a hundred starts, and not caught")
		}
		h.Leave()
		h.commit(0, 0)
		h.load(Config{})
	}
	h.expect("starts", starts, 5*(mostHandovers+1))
}

func TestAPartitionThatComesBackKeepsItsRuns(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 4, "")
	h.begin(2)
	h.Leave()
	h.commit(0, 0)
	if !h.Resume(h.record.Offset, h.record.Metadata) {
		t.Fatal("the partition is not known again, although nobody else has had it")
	}
	h.expect("running", h.Runs(), []int64{0, 1})
	h.expect("started before a commit", h.start(0, 4), []int64(nil))
	h.expect("started", h.begin(4), []int64{2, 3})
	h.settle(0, 2)
	h.commit(0, 0)

	h.load(Config{})
	h.expect("crashes", h.crashes(4), map[int64]int32{1: 1, 3: 1})
}

func TestWhatRunsWhenAPartitionComesBackIsPutOnRecord(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 1, "")
	h.begin(1)
	h.Leave()
	h.commit(0, 0)
	h.Resume(h.record.Offset, h.record.Metadata)
	h.expect("commits", h.commit(0, 0), 1)
	h.load(Config{})
	h.expect("crashes", h.crashes(1), map[int64]int32{0: 1})
}

func TestAPartitionThatAnotherHadIsNotKnownAgain(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 2, "")
	h.begin(1)
	h.Leave()
	h.commit(0, 0)
	first := h.Tracker

	h.load(Config{})
	h.add(0, 2, "")
	h.begin(1)
	if _, err := h.Release(h.runs[0]); err != nil {
		t.Fatal(err)
	}
	h.Leave()
	h.commit(0, 0)
	if first.Resume(h.record.Offset, h.record.Metadata) {
		t.Error("the first owner goes on, although a second has committed")
	}
	if !h.Resume(h.record.Offset, h.record.Metadata) {
		t.Error("the second owner does not know its own commit")
	}
}

func TestACommitWithoutAnswerIsFoundOnRecord(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{true, false} {
		h := take(t, Config{})
		h.add(0, 2, "")
		h.begin(2)
		n := h.settle(0)
		c, _ := h.Commit(0, 0)
		if answered {
			h.Unknown(c.Number)
		}
		if !h.Resume(c.Offset, c.Metadata) {
			t.Fatal("a commit that had no answer is not known again")
		}
		h.expect("final", h.Final(n), true)
		h.expect("committed", h.Committed(), int64(1))
		h.settle(1)
		h.commit(0, 0)
		h.expect("offset", h.record.Offset, int64(2))
	}
}
