package tracker

import (
	"fmt"
	"testing"
)

// The worst that can become of what runs is that all of it has to wait in its place, or
// that every second one is settled.
func TestWhateverRunsCanBeSettled(t *testing.T) {
	t.Parallel()
	for _, bound := range []int{128, 256, 1000, 4096} {
		for _, key := range []string{"", "k"} {
			for _, again := range []bool{false, true} {
				if again && key == "" {
					continue
				}
				t.Run(fmt.Sprint(bound, key, again), func(t *testing.T) {
					t.Parallel()
					h := take(t, Config{Metadata: bound, Chunk: 1 << 16, Window: 1 << 16})
					spread(h, key)
					h.begin(aLot)
					h.expect("paused", h.Paused(), MetadataFull)
					for offset, run := range h.runs {
						var err error
						switch {
						case again && offset%100 == 0:
							_, err = h.Again(run, Counts{Failures: aLot, Snoozes: aLot, Parks: aLot}, latestDue)
						case !again && offset != 0 && offset%200 == 0:
							_, err = h.Settle(run)
						}
						if err != nil {
							t.Fatal(err)
						}
					}
					h.commit(0, aLot)
					if n := len(h.record.Metadata); n > bound {
						t.Errorf("metadata of %d bytes, bound %d", n, bound)
					}
					h.load(Config{Metadata: bound})
				})
			}
		}
	}
}

// spread adds records that are as far from each other as the window lets them be many.
func spread(h *hand, key string) {
	for offset := int64(0); offset < 1<<16; offset += 100 {
		if key != "" {
			key = fmt.Sprint("key ", offset)
		}
		h.add(offset, offset+1, key)
		h.add(offset+1, offset+2, "")
	}
}

// Everything is as wide as it can be: a distance of four bytes before each note, all
// that a note can have in it, and the lowest record in the place of its own. There is no
// byte too few, and no room for one more.
func TestTheWidestNotesJustFit(t *testing.T) {
	t.Parallel()
	const far = 2_200_000
	for bound := 128; bound < 400; bound++ {
		config := Config{Metadata: bound, Chunk: widestWindow}
		h := take(t, config)
		add := func(from, to int64) {
			for i := from; i < to; i++ {
				h.add(far*i, far*i+1, fmt.Sprint(max(1, i)))
			}
		}
		add(0, 25)
		h.begin(1)
		h.load(config) // the crash line is far away now
		add(0, 50)
		for h.begin(1) != nil {
			continue
		}
		h.settle(0)
		delete(h.runs, 0)
		for h.begin(1) != nil { // another takes the place, then the lowest starts
			continue
		}
		for _, run := range h.runs {
			if _, err := h.Again(run, Counts{aLot, aLot, aLot}, latestDue); err != nil {
				t.Fatal(err)
			}
		}
		h.commit(0, 0)
		n := len(h.record.Metadata)
		if n > bound {
			t.Errorf("metadata of %d bytes, bound %d", n, bound)
		}
		if spare := (bound - n) * 3 / 4; spare > keyedSpace+6 {
			t.Errorf("metadata of %d bytes, bound %d: %d are of no use", n, bound, spare)
		}
		h.load(config)
	}
}

func TestSettlementsBetweenTwoCommitsAreReckonedWith(t *testing.T) {
	t.Parallel()
	const far = 2_200_000
	for bound := 128; bound < 400; bound++ {
		h := take(t, Config{Metadata: bound, Chunk: widestWindow})
		for i := range int64(60) {
			h.add(far*i, far*i+1, fmt.Sprint(i))
			h.add(far*i+far/2, far*i+far/2+1, "")
		}
		h.commit(0, aLot)
		for started := h.start(0, 2); len(started) == 2; started = h.start(0, 2) {
			h.settle(started[1])
			delete(h.runs, started[1])
		}
		h.expect("paused", h.Paused(), MetadataFull)
		for _, run := range h.runs {
			if _, err := h.Again(run, Counts{aLot, aLot, aLot}, latestDue); err != nil {
				t.Fatal(err)
			}
		}
		h.commit(0, 0)
		if n := len(h.record.Metadata); n > bound {
			t.Errorf("metadata of %d bytes, bound %d", n, bound)
		}
	}
}

// The second of a key starts when the first is settled on record, and until then others
// may take the place that the first had.
func TestTheLowestRecordHasAPlaceOfItsOwn(t *testing.T) {
	t.Parallel()
	h := take(t, Config{Metadata: 128})
	h.add(0, 2, "k")
	h.add(2, 50, "")
	h.begin(aLot)
	h.expect("paused", h.Paused(), MetadataFull)
	h.settle(0)
	if len(h.start(0, aLot)) == 0 {
		t.Fatal("no other takes the place")
	}
	h.expect("paused", h.Paused(), MetadataFull)
	h.expect("started", h.begin(aLot), []int64{1})
}

func TestAFullMetadataEmptiesFromItsLowestRecord(t *testing.T) {
	t.Parallel()
	h := take(t, Config{Metadata: 128})
	h.add(0, 1000, "")
	for h.begin(aLot) != nil {
		for offset := range h.runs {
			if offset%2 == 1 {
				h.settle(offset)
				delete(h.runs, offset)
			}
		}
	}
	h.expect("paused", h.Paused(), MetadataFull)
	h.expect("running", h.Running() > 4, true)
	before := h.Running()
	h.settle(0)
	delete(h.runs, 0)
	if started := h.begin(aLot); len(started) == 0 {
		t.Error("nothing starts after the lowest was settled")
	}
	if h.Running() < before {
		t.Errorf("%d run after the lowest was settled, %d before", h.Running(), before)
	}
}

func TestTheLowestRecordAlwaysStarts(t *testing.T) {
	t.Parallel()
	config := Config{Metadata: 128}
	h := take(t, config)
	for offset := range int64(20) {
		h.add(offset, offset+1, fmt.Sprint(offset))
	}
	for range 3 {
		for h.begin(aLot) != nil {
			for offset, run := range h.runs {
				delete(h.runs, offset)
				if _, err := h.Again(run, Counts{Failures: 1}, latestDue); err != nil {
					t.Fatal(err)
				}
			}
		}
		h.expect("paused", h.Paused(), MetadataFull)
		h.load(config)
		for offset := range int64(20) {
			h.add(offset, offset+1, fmt.Sprint(offset))
		}
	}
	for settled := int64(0); settled < 20; settled++ {
		h.commit(latestDue, 1)
		h.expect("started", h.start(latestDue, 1), []int64{settled})
		h.settle(settled)
	}
}

func TestMetadataOfALargerBound(t *testing.T) {
	t.Parallel()
	h := take(t, Config{Chunk: 100})
	h.add(0, 100, "")
	h.begin(aLot)
	for offset := int64(1); offset < 100; offset += 2 {
		h.settle(offset)
	}
	h.commit(0, 0)
	if _, err := Load(Config{Metadata: 128}, h.record.Offset, h.record.Metadata); err != ErrBound {
		t.Errorf("Load under a smaller bound: %v, want ErrBound", err)
	}
}
