package kafka

import (
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func TestDeadLettersAreCountedAsTheyComeAndGo(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	s, _ := c.open()
	other, _ := c.open()
	check := func(what string, dead int64) {
		t.Helper()
		for _, s := range []*store{s, other} {
			q := numbersOf(t, s, "q")
			age, known := q.OldestDead.Get()
			if q.Dead != provider.Measured(dead) || !known || (age > 0) != (dead > 0) || age > testPatience {
				t.Errorf("%s: %v dead, the oldest for %v; want %d", what, q.Dead, age, dead)
			}
		}
	}
	discard := func(addresses ...string) {
		t.Helper()
		got, err := s.provider.Dead.Discard(t.Context(), addresses...)
		outcomes(t, got, err)
	}
	check("a queue that does not exist", 0)
	at := bury(t, s, someJobs(5, "q")...)
	check("five died", 5)
	check("nothing happened", 5)
	discard(at[1], at[3])
	check("two in the middle are gone", 3)
	later := bury(t, other, aJob("later", "q"))
	check("one more died elsewhere", 4)
	discard(at[0])
	check("the first is gone", 3)
	if err := s.deleteRecords(t.Context(), s.names.dead("q"), 0, 4); err != nil {
		t.Fatal(err)
	}
	check("one was deleted by hand", 2)
	discard(at[4], later[0])
	check("all are gone", 0)
	bury(t, s, aJob("new", "q"))
	check("one died after that", 1)
	gone := func() {
		t.Helper()
		until(t, "the topic is gone", func() bool {
			c.deleteTopics()
			there, err := other.topics.there(t.Context(), s.names.dead("q"))
			return err == nil && !there
		})
	}
	gone()
	bury(t, s, someJobs(20, "q")...)
	check("the topic was made anew and is longer than before", 20)
	gone()
	bury(t, s, someJobs(3, "q")...)
	check("the topic was made anew and is shorter", 3)
}

func TestTheOldestLetterIsTheOneThatDiedFirst(t *testing.T) {
	t.Parallel()
	s, _ := sharedCluster(t).open()
	at := bury(t, s, aJob("old", "q"))
	first := time.Now()
	bury(t, s, aJob("young", "q"))
	if age, _ := numbersOf(t, s, "q").OldestDead.Get(); age < time.Since(first)-time.Second || age < 1 {
		t.Errorf("the oldest died %v ago", age)
	}
	got, err := s.provider.Dead.Discard(t.Context(), at[0])
	outcomes(t, got, err)
	if age, _ := numbersOf(t, s, "q").OldestDead.Get(); age > time.Since(first) {
		t.Errorf("the oldest that is left died %v ago, before it did", age)
	}
}
