package kafka

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// bury stores dead letters of jobs, and returns their addresses.
func bury(t testing.TB, s *store, jobs ...provider.Job) []string {
	t.Helper()
	var addresses []string
	for _, j := range jobs {
		f := provider.Failure{At: time.Now(), Class: provider.ClassPermanent, Message: "no " + j.ID, Attempt: 1}
		dead := j.Dead(f)
		id := rand.Text()
		if outcome, err := s.putLetter(t.Context(), id, j.Queue, &dead, nil, f); outcome != provider.OutcomeStored {
			t.Fatalf("dead letter of %s: %s, %v", j.ID, outcome, err)
		}
		addresses = append(addresses, addressOf(id, j.Queue))
	}
	return addresses
}

// listed returns the ids of all letters that match, page after page.
func listed(t testing.TB, s *store, filter provider.DeadFilter) (ids []string) {
	t.Helper()
	for page := ""; ; {
		letters, next, err := s.provider.Dead.List(t.Context(), filter, page)
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		for _, l := range letters {
			ids = append(ids, l.Job.ID)
		}
		if page = next; page == "" {
			return ids
		}
	}
}

func outcomes(t testing.TB, stored []provider.Stored, err error) (all []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stored {
		all = append(all, s.Outcome.String()+" "+s.ID)
	}
	return all
}

func TestDeadLettersAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	s, _ := sharedCluster(t).open()
	var want []string
	for i := range 25 {
		queue := []string{"a", "b"}[i%2]
		j := aJob(fmt.Sprint(i), queue)
		bury(t, s, j)
		want = append(want, j.ID)
	}
	slices.Reverse(want)
	if diff := cmp.Diff(want, listed(t, s, provider.DeadFilter{Limit: 4})); diff != "" {
		t.Errorf("all letters, four a page (-want +got):\n%s", diff)
	}
	if got := listed(t, s, provider.DeadFilter{Queue: "b"}); len(got) != 12 || got[0] != "23" {
		t.Errorf("letters of queue b: %v", got)
	}
	if got := listed(t, s, provider.DeadFilter{JobID: "7"}); !slices.Equal(got, []string{"7"}) {
		t.Errorf("letters of job 7: %v", got)
	}
	if got := listed(t, s, provider.DeadFilter{Queue: "never used"}); len(got) > 0 {
		t.Errorf("letters of a queue that does not exist: %v", got)
	}
	if _, _, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{}, "page 2"); err == nil {
		t.Error("a page that List never returned is no error")
	}
}

func TestALetterIsReplayedOrDiscardedOnce(t *testing.T) {
	t.Parallel()
	s, _ := sharedCluster(t).open()
	jobs := someJobs(5, "q")
	at := bury(t, s, jobs...)
	got, err := s.provider.Dead.Replay(t.Context(), at[1], "nobody@q", at[3], "no address")
	if diff := cmp.Diff([]string{"stored q-1", "refused ", "stored q-3", "refused "}, outcomes(t, got, err)); diff != "" {
		t.Errorf("Replay (-want +got):\n%s", diff)
	}
	got, err = s.provider.Dead.Discard(t.Context(), at[0], at[1])
	if diff := cmp.Diff([]string{"stored q-0", "refused "}, outcomes(t, got, err)); diff != "" {
		t.Errorf("Discard (-want +got):\n%s", diff)
	}
	if !errors.Is(got[1].Err, provider.ErrNotFound) {
		t.Errorf("Discard of what was replayed: %v, want ErrNotFound", got[1].Err)
	}
	if got := listed(t, s, provider.DeadFilter{}); !slices.Equal(got, []string{"q-4", "q-2"}) {
		t.Errorf("left are %v, want q-4 and q-2", got)
	}
	if _, err := s.provider.Dead.Get(t.Context(), at[0]); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Get of what was discarded: %v, want ErrNotFound", err)
	}
	var back []string
	for _, records := range inTopic(t, s, "q") {
		for _, r := range records {
			j, _ := provider.Unmarshal(r.value)
			back = append(back, j.ID)
			if j.Counters != (provider.Counters{Replays: 1}) || len(j.History) != 1 {
				t.Errorf("job %s is back with counters %+v and %d failures, want one replay and one", j.ID, j.Counters, len(j.History))
			}
		}
	}
	if slices.Sort(back); !slices.Equal(back, []string{"q-1", "q-3"}) {
		t.Errorf("back in the queue are %v, want q-1 and q-3", back)
	}
}

// TestAReplayThatIsCutOffLosesNothing takes all connections away when the copy is stored.
func TestAReplayThatIsCutOffLosesNothing(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	var cut *store
	ctx, cancel := context.WithCancel(t.Context())
	c.in.hook = func(point string) {
		if point == "replayed" {
			cut.wires.close()
			cancel()
		}
	}
	cut, _ = c.open()
	at := bury(t, cut, aJob("one", "q"))
	stored, err := cut.provider.Dead.Replay(ctx, at...)
	if err == nil && stored[0].Outcome != provider.OutcomeUnknown {
		t.Errorf("Replay: %s, %v; want unknown, or an error", stored[0].Outcome, stored[0].Err)
	}
	c.in.hook = nil
	s, _ := c.open()
	if got := listed(t, s, provider.DeadFilter{}); !slices.Equal(got, []string{"one"}) {
		t.Errorf("dead letters are %v, want one", got)
	}
	got, err := s.provider.Dead.Replay(t.Context(), at...)
	if diff := cmp.Diff([]string{"stored one"}, outcomes(t, got, err)); diff != "" {
		t.Errorf("Replay again (-want +got):\n%s", diff)
	}
	n := 0
	for _, records := range inTopic(t, s, "q") {
		n += len(records)
	}
	if n != 2 || len(listed(t, s, provider.DeadFilter{})) != 0 {
		t.Errorf("%d copies are in the queue, want two under one id, and no letter", n)
	}
}

func TestWhatIsBeforeTheFirstLetterIsDeleted(t *testing.T) {
	t.Parallel()
	s, _ := sharedCluster(t).open()
	at := bury(t, s, someJobs(6, "q")...)
	begins := func() int64 {
		within, err := s.bounds(t.Context(), s.names.dead("q"), 0)
		if err != nil {
			t.Fatal(err)
		}
		return within[0].FirstOffset
	}
	discard := func(addresses ...string) {
		t.Helper()
		got, err := s.provider.Dead.Discard(t.Context(), addresses...)
		outcomes(t, got, err)
	}
	if discard(at[1]); begins() != 0 {
		t.Errorf("the topic begins at %d, and its first letter at 0", begins())
	}
	if discard(at[0]); begins() != 2 {
		t.Errorf("the topic begins at %d, and its first letter at 2", begins())
	}
	if discard(at[2:]...); begins() < 6 {
		t.Errorf("the topic begins at %d, and has no letters", begins())
	}
	if got := listed(t, s, provider.DeadFilter{}); len(got) > 0 {
		t.Errorf("left are %v", got)
	}
}

func TestBytesThatAreNoRecordAreKept(t *testing.T) {
	t.Parallel()
	s, _ := sharedCluster(t).open()
	for _, raw := range [][]byte{{0xff, 0, 0xfe}, {}, nil} {
		f := provider.Failure{Class: provider.ClassNoRecord, Message: "it is no record"}
		id := rand.Text()
		if outcome, err := s.putLetter(t.Context(), id, "q", nil, raw, f); outcome != provider.OutcomeStored {
			t.Fatalf("%s, %v", outcome, err)
		}
		l, err := s.provider.Dead.Get(t.Context(), addressOf(id, "q"))
		if err != nil || l.Raw == nil || !bytes.Equal(l.Raw, raw) || l.Failure.Class != provider.ClassNoRecord || l.Failure.Message != f.Message {
			t.Errorf("letter of %v: %+v, %v", raw, l, err)
		}
		got, err := s.provider.Dead.Replay(t.Context(), l.Address)
		if diff := cmp.Diff([]string{"refused "}, outcomes(t, got, err)); diff != "" || !errors.Is(got[0].Err, provider.ErrNoRecord) {
			t.Errorf("Replay: %v, want ErrNoRecord", got)
		}
	}
}

func TestALetterThatWasStoredTwiceIsOne(t *testing.T) {
	t.Parallel()
	s, _ := sharedCluster(t).open()
	j := aJob("one", "q")
	f := provider.Failure{Class: provider.ClassFailed, Message: "no"}
	dead := j.Dead(f)
	id := rand.Text()
	for range 2 {
		if outcome, err := s.putLetter(t.Context(), id, "q", &dead, nil, f); outcome != provider.OutcomeStored {
			t.Fatalf("%s, %v", outcome, err)
		}
	}
	if got := listed(t, s, provider.DeadFilter{}); !slices.Equal(got, []string{"one"}) {
		t.Errorf("listed are %v", got)
	}
	got, err := s.provider.Dead.Discard(t.Context(), addressOf(id, "q"))
	outcomes(t, got, err)
	if got := listed(t, s, provider.DeadFilter{}); len(got) > 0 {
		t.Errorf("after it was discarded, listed are %v", got)
	}
}

func TestManyLettersAreListed(t *testing.T) {
	t.Parallel()
	s, _ := sharedCluster(t).open()
	const n = 20_000
	var parcels []*parcel
	for i := range n {
		j := aJob(fmt.Sprint(i), "q")
		j.Payload = make([]byte, 500)
		dead := j.Dead(provider.Failure{Class: provider.ClassFailed})
		p, err := letterParcel(rand.Text(), &dead, nil, provider.Failure{})
		if err != nil {
			t.Fatal(err)
		}
		parcels = append(parcels, p)
	}
	s.publisher.send(t.Context(), s.deadOf("q"), parcels)
	began := time.Now()
	letters, next, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{}, "")
	t.Logf("a page of %d letters of %d took %v", len(letters), n, time.Since(began))
	if err != nil || len(letters) != usualLimit || next == "" {
		t.Fatalf("%d letters, next page %q, %v", len(letters), next, err)
	}
	for _, look := range []string{"the first", "a second"} {
		began = time.Now()
		stats := numbersOf(t, s, "q")
		t.Logf("counting them took %v %s time", time.Since(began), look)
		if count, _ := stats.Dead.Get(); count != n {
			t.Errorf("Dead is %d, want %d", count, n)
		}
	}
}

func TestDeletingRecordsMovesTheBeginning(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 1
	s, _ := c.open()
	topic := s.names.jobs("q")
	if err := s.deleteRecords(t.Context(), topic, 0, 1); err == nil || !unrouted(err) {
		t.Errorf("of a topic that is not there: %v", err)
	}
	publish(t, s, someJobs(10, "q")...)
	for _, before := range []int64{9, 1} {
		if err := s.deleteRecords(t.Context(), topic, 0, before); err != nil {
			t.Errorf("before %d: %v", before, err)
		}
	}
	if err := s.deleteRecords(t.Context(), topic, 0, 1000); err == nil {
		t.Error("beyond the end: no error")
	}
	if records := inTopic(t, s, "q")[0]; len(records) != 1 || records[0].offset != 9 {
		t.Errorf("left are %d records, want the one at 9", len(records))
	}
}

// TestTheBrokerRemovesWhatIsGone waits for the broker's cleaner, which comes every 15
// seconds.
func TestTheBrokerRemovesWhatIsGone(t *testing.T) {
	t.Parallel()
	if !soaks() {
		t.Skip("one of the long forms: BACKSTAGE_SOAK=1")
	}
	s, _ := sharedCluster(t).open()
	at := bury(t, s, someJobs(5, "q")...)
	topic := s.names.dead("q")
	var soon []kafkago.IncrementalAlterConfigsRequestConfig
	for key, value := range map[string]string{"segment.ms": "100", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"} {
		soon = append(soon, kafkago.IncrementalAlterConfigsRequestConfig{Name: key, Value: value, ConfigOperation: kafkago.ConfigOperationSet})
	}
	r, err := s.client.IncrementalAlterConfigs(t.Context(), &kafkago.IncrementalAlterConfigsRequest{
		Resources: []kafkago.IncrementalAlterConfigsRequestResource{{ResourceType: kafkago.ResourceTypeTopic, ResourceName: topic, Configs: soon}}})
	if err != nil || r.Resources[0].Error != nil {
		t.Fatal(err, r)
	}
	got, err := s.provider.Dead.Discard(t.Context(), at[1], at[3])
	outcomes(t, got, err)
	until(t, "the letters that were discarded are no longer in the topic", func() bool {
		bury(t, s, aJob("later", "q")) // the cleaner leaves the last segment alone
		n := 0
		if err := s.scan(t.Context(), topic, 0, 0, 5, func(*received) bool { n++; return true }); err != nil {
			t.Fatal(err)
		}
		return n == 3
	})
	if left := listed(t, s, provider.DeadFilter{}); !slices.Equal(left[len(left)-3:], []string{"q-4", "q-2", "q-0"}) {
		t.Errorf("left are %v", left)
	}
}
