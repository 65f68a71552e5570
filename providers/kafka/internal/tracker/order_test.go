package tracker

import (
	"fmt"
	"testing"
)

func TestRecordsOfOneKeyRunOneAtATimeInOrder(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 3, "a")
	h.add(3, 5, "b")
	h.add(5, 6, "")
	h.expect("started", h.begin(aLot), []int64{0, 3, 5})
	h.settle(0)
	h.expect("started before the settlement is on record", h.start(0, aLot), []int64(nil))
	h.expect("started", h.begin(aLot), []int64{1})
	h.settle(1, 3)
	h.expect("started", h.begin(aLot), []int64{2, 4})
}

func TestTheNextOfAKeyWaitsForTheRightCommit(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 2, "a")
	h.add(2, 3, "")
	h.begin(aLot)
	h.settle(2)
	c, _ := h.Commit(0, aLot)
	h.settle(0)
	h.Accepted(c.Number)
	h.expect("started by a commit that was made before the settlement", h.start(0, aLot), []int64(nil))
	h.expect("started", h.begin(aLot), []int64{1})
}

func TestARecordThatIsPutOffHoldsBackItsKeyAlone(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 2, "a")
	h.add(2, 3, "b")
	h.begin(1)
	counts := Counts{Failures: 2, Snoozes: 1, Parks: 3}
	n, err := h.Again(h.runs[0], counts, 1000)
	if err != nil {
		t.Fatal(err)
	}
	h.expect("started", h.begin(aLot), []int64{2})
	h.expect("final", h.Final(n), true)
	due, ok := h.Wake()
	h.expect("wake", []any{due, ok, h.Later()}, []any{int64(1000), true, 1})
	h.expect("commits before it is due", h.commit(999, aLot), 0)
	h.expect("commits when it is", h.commit(1000, aLot), 1)
	h.expect("started", h.start(1000, aLot), []int64{0})
	h.expect("counts", h.runs[0].Counts, counts)
	h.expect("crashes", h.runs[0].Crashes, int32(0))
}

func TestARecordThatIsPutOffStaysSoAfterACrash(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 2, "a")
	h.begin(1)
	if _, err := h.Again(h.runs[0], Counts{Failures: 1}, 1000); err != nil {
		t.Fatal(err)
	}
	h.commit(0, 0)
	h.load(Config{})
	h.add(0, 2, "a")
	h.expect("started too early", h.begin(aLot), []int64(nil))
	h.commit(1000, aLot)
	h.expect("started", h.start(1000, aLot), []int64{0})
	h.expect("run", []any{h.runs[0].Counts, h.runs[0].Crashes}, []any{Counts{Failures: 1}, int32(0)})
}

func TestALaterOneOfAKeyHasNotCrashed(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 3, "a")
	h.add(3, 4, "b")
	h.begin(aLot)
	h.load(Config{})
	h.add(0, 3, "a")
	h.add(3, 4, "b")
	h.expect("started", h.begin(aLot), []int64{0, 3})
	h.expect("crashes", []int32{h.runs[0].Crashes, h.runs[3].Crashes}, []int32{1, 1})
	h.settle(0)
	h.expect("started", h.begin(aLot), []int64{1})
	h.expect("crashes of one that waited", h.runs[1].Crashes, int32(0))
}

func TestARecordWithoutAKeyCannotWaitInItsPlace(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 1, "")
	h.begin(1)
	if _, err := h.Again(h.runs[0], Counts{}, 0); err != ErrUnordered {
		t.Fatalf("Again: %v, want ErrUnordered", err)
	}
	h.settle(0)
}

func TestCountsEndAtTheirBounds(t *testing.T) {
	t.Parallel()
	h := take(t, Config{})
	h.add(0, 1, "a")
	h.begin(1)
	if _, err := h.Again(h.runs[0], Counts{Failures: aLot, Snoozes: aLot, Parks: -1}, 1<<62); err != nil {
		t.Fatal(err)
	}
	due, _ := h.Wake()
	h.expect("due", due, int64(latestDue))
	h.commit(0, 0)
	h.load(Config{})
	h.add(0, 1, "a")
	h.commit(latestDue, 1)
	h.start(latestDue, 1)
	h.expect("counts", h.runs[0].Counts, Counts{Failures: mostFailures, Snoozes: mostPutOff})
}

func TestManyRecordsOfOneKeyDoNotSlowDownOthers(t *testing.T) {
	t.Parallel()
	const many = 50_000
	h := take(t, Config{})
	h.add(0, many, "slow")
	h.begin(1)
	for offset := int64(many); offset < many+10_000; offset++ {
		h.add(offset, offset+1, fmt.Sprint("key ", offset%7))
		h.begin(aLot)
		if offset%7 == 6 {
			for o := range h.runs {
				if o >= many {
					h.settle(o)
					delete(h.runs, o)
				}
			}
		}
	}
	for offset := range int64(10_000) {
		h.settle(offset)
		h.begin(1)
	}
	h.expect("offset", h.record.Offset, int64(10_000))
}
