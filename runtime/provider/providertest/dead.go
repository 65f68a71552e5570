package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

func deadChecks() []check {
	all := []check{
		{
			name: "dead/letter",
			rule: "DeadLetter stores the job among the dead letters, as Job.Dead says: with its counters and history, the failure last, and with fields of a newer version.",
			run:  deadLetter,
		}, {
			name: "dead/pages",
			rule: "List returns dead letters newest first, and the page to ask for next; an empty one means that this was the last.",
			run:  deadPages,
		}, {
			name: "dead/filter",
			rule: "DeadFilter selects dead letters by each of its fields; zero fields select all.",
			run:  deadFilter,
		}, {
			name: "dead/two of one job",
			rule: "Two letters of one job have two addresses.",
			run:  deadTwo,
		}, {
			name: "dead/replay",
			rule: "Replay returns dead letters to their queues, as Job.Replay says: same id, counters starting again, history kept.",
			run:  deadReplay,
		}, {
			name: "dead/replay again",
			rule: "Replay says for each what became of it; one that is not there is OutcomeRefused with ErrNotFound.",
			run:  deadReplayAgain,
		}, {
			name: "dead/replay cut off",
			rule: "A replay that is cut off leaves each job in one of the two places, or a copy in both, never in none.",
			run:  deadReplayCut,
		}, {
			name: "dead/replay from two sides",
			rule: "A dead letter that two replay at once is in its queue, and no longer among the dead letters.",
			run:  deadReplayRace,
		}, {
			name: "dead/discard",
			rule: "Discard removes dead letters, and says for each what became of it: OutcomeStored if the removal is on record, otherwise as Replay does.",
			run:  deadDiscard,
		}, {
			name:  "dead/garbage",
			rule:  "Bytes that are no record are dead-lettered by the provider itself, as bytes, with an event of kind ForeignRecord; others go on.",
			needs: []need{needGarbage},
			run:   deadGarbage,
		},
	}
	for i := range all {
		all[i].needs = append([]need{needDead}, all[i].needs...)
	}
	return all
}

func needGarbage(t *env) string {
	if t.h.Garbage == nil {
		return "not measured here: the harness has no Garbage"
	}
	return ""
}

// letters lists one page of dead letters.
func (t *env) letters(p *provider.Provider, f provider.DeadFilter) []provider.DeadLetter {
	t.Helper()
	letters, _ := t.page(p, f, "")
	return letters
}

func (t *env) page(p *provider.Provider, f provider.DeadFilter, page string) ([]provider.DeadLetter, string) {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	letters, next, err := p.Dead.List(ctx, f, page)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	return letters, next
}

// letter lists the only dead letter that matches.
func (t *env) letter(f provider.DeadFilter) provider.DeadLetter {
	t.Helper()
	letters := t.letters(t.p, f)
	if len(letters) != 1 {
		t.Fatalf("List of %+v: %d letters; want 1", f, len(letters))
	}
	return letters[0]
}

func (t *env) replay(p *provider.Provider, addresses ...string) []provider.Stored {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	stored, err := p.Dead.Replay(ctx, addresses...)
	if err != nil {
		t.Fatalf("Replay: %v", err)
	}
	if len(stored) != len(addresses) {
		t.Fatalf("Replay of %d dead letters gave %d answers", len(addresses), len(stored))
	}
	return stored
}

func (t *env) discard(p *provider.Provider, addresses ...string) []provider.Stored {
	t.Helper()
	ctx, cancel := t.ctx()
	defer cancel()
	stored, err := p.Dead.Discard(ctx, addresses...)
	if err != nil {
		t.Fatalf("Discard: %v", err)
	}
	if len(stored) != len(addresses) {
		t.Fatalf("Discard of %d dead letters gave %d answers", len(addresses), len(stored))
	}
	return stored
}

// bury publishes a job and dead-letters it.
func (t *env) bury(j provider.Job, f provider.Failure) {
	t.Helper()
	t.publish(t.p, j)
	w := t.subscribe(t.p, 1, j.Queue)
	t.deadLetter(w.one(), f)
	w.end()
}

// notFound checks an answer for a dead letter that is not there.
func (t *env) notFound(what string, s provider.Stored) {
	t.Helper()
	if s.Outcome != provider.OutcomeRefused || !errors.Is(s.Err, provider.ErrNotFound) {
		t.Errorf("%s: %s, %v; want refused with ErrNotFound", what, s.Outcome, s.Err)
	}
}

func (t *env) get(address string) (provider.DeadLetter, error) {
	ctx, cancel := t.ctx()
	defer cancel()
	return t.p.Dead.Get(ctx, address)
}

// sameLetter checks a dead letter.
func (t *env) sameLetter(what string, got *provider.DeadLetter, queue string, want *provider.Job) {
	t.Helper()
	t.same(what, &got.Job, want)
	last := want.History[len(want.History)-1]
	if f := got.Failure; f.Class != last.Class || f.Message != last.Message || f.Worker != last.Worker || f.Attempt != last.Attempt || !f.At.Equal(last.At) {
		t.Errorf("%s: its failure is %+v; want the last of its history, %+v", what, f, last)
	}
	if got.Queue != queue || got.At.IsZero() || got.Address == "" || got.Raw != nil {
		t.Errorf("%s: queue %q, at %v, address %q, %d raw bytes", what, got.Queue, got.At, got.Address, len(got.Raw))
	}
}

func deadLetter(t *env) {
	j := t.full(work)
	f := failure(2)
	f.Class = provider.ClassExhausted
	t.bury(j, f)
	want := j.Dead(f)
	l := t.letter(provider.DeadFilter{})
	t.sameLetter("a listed dead letter", &l, work, &want)
	got, err := t.get(l.Address)
	if err != nil {
		t.Fatalf("Get of a listed address: %v", err)
	}
	t.sameLetter("a dead letter by its address", &got, work, &want)
	if _, err := t.get("nowhere"); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Get of an address that never was: %v; want ErrNotFound", err)
	}
	t.subscribe(t.p, 1, work).nothing("it is dead")
}

func deadPages(t *env) {
	const letters = 23
	t.publish(t.p, t.some(letters, work)...)
	w := t.subscribe(t.p, 1, work)
	var want []string
	for range letters {
		d := w.one()
		t.deadLetter(d, failure(1))
		want = append(want, d.Job().ID)
		time.Sleep(2 * time.Millisecond) // clocks of stores are coarse
	}
	slices.Reverse(want)
	var got []string
	for page, pages := "", 0; ; pages++ {
		ls, next := t.page(t.p, provider.DeadFilter{Limit: 10}, page)
		if len(ls) > 10 || pages > letters {
			t.Fatalf("page %d has %d letters; want at most 10, and an end", pages, len(ls))
		}
		for _, l := range ls {
			got = append(got, l.Job.ID)
		}
		if page = next; page == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages list\n     %v\nwant %v", got, want)
	}
	if n := len(t.letters(t.p, provider.DeadFilter{})); n != letters {
		t.Errorf("one page without a limit lists %d of %d letters", n, letters)
	}
	ctx, cancel := t.ctx()
	defer cancel()
	if _, _, err := t.p.Dead.List(ctx, provider.DeadFilter{}, "no page"); err == nil || errors.Is(err, provider.ErrNotFound) {
		t.Errorf("List of a page that never was: %v; want an error that says so, and is not ErrNotFound", err)
	}
}

func deadFilter(t *env) {
	classes := []string{provider.ClassExhausted, provider.ClassPermanent}
	var last provider.Job
	for i := range 4 {
		j := t.job([]string{work, other}[i/2])
		j.Task = fmt.Sprintf("Task%d", i%2)
		f := failure(1)
		f.Class = classes[i%2]
		t.bury(j, f)
		last = j
	}
	all := t.letters(t.p, provider.DeadFilter{})
	if len(all) != 4 {
		t.Fatalf("List of all: %d letters; want 4", len(all))
	}
	middle := all[1].At // newest first
	for _, f := range []provider.DeadFilter{
		{Queue: work},
		{Queue: "empty"},
		{Task: "Task1"},
		{Class: provider.ClassExhausted},
		{JobID: last.ID},
		{Since: middle},
		{Until: middle},
		{Since: middle, Until: middle},
		{Queue: other, Task: "Task0", Class: provider.ClassExhausted},
	} {
		var want, got []string
		for _, l := range all {
			if f.Match(&l) {
				want = append(want, l.Job.ID)
			}
		}
		for _, l := range t.letters(t.p, f) {
			got = append(got, l.Job.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("List of %+v: %v; want %v", f, got, want)
		}
	}
}

func deadTwo(t *env) {
	j := t.job(work)
	t.bury(j, failure(1))
	t.bury(j, failure(1))
	ls := t.letters(t.p, provider.DeadFilter{JobID: j.ID})
	if len(ls) != 2 || ls[0].Address == ls[1].Address {
		t.Fatalf("a job that died twice has %d letters: %+v; want 2 with addresses of their own", len(ls), ls)
	}
	t.discard(t.p, ls[0].Address)
	if l := t.letter(provider.DeadFilter{JobID: j.ID}); l.Address != ls[1].Address {
		t.Errorf("after %s was discarded %s is there; want %s", ls[0].Address, l.Address, ls[1].Address)
	}
}

func deadReplay(t *env) {
	j := t.full(work)
	t.bury(j, failure(2))
	l := t.letter(provider.DeadFilter{})
	t.outcome("Replay", t.replay(t.p, l.Address)[0], provider.OutcomeStored)
	d := t.subscribe(t.open(), 1, work).one()
	got := *d.Job()
	if len(got.Replays) == 0 {
		t.Fatalf("a replayed job does not say when it was")
	}
	want := j.Dead(failure(2))
	want.History = got.History // its times are compared by dead/letter
	want = want.Replay(got.FirstDue)
	t.same("a replayed job", &got, &want)
	if len(got.History) != 2 {
		t.Errorf("a replayed job has %d failures in its history; want 2", len(got.History))
	}
	t.ack(d)
	if _, err := t.get(l.Address); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Get after a replay: %v; want ErrNotFound", err)
	}
}

func deadReplayAgain(t *env) {
	t.bury(t.job(work), failure(1))
	t.bury(t.job(other), failure(1))
	var addresses, ids []string
	for _, l := range t.letters(t.p, provider.DeadFilter{}) {
		addresses, ids = append(addresses, l.Address), append(ids, l.Job.ID)
	}
	stored := t.replay(t.p, addresses[0], "nowhere", addresses[1])
	t.outcome("Replay of the first", stored[0], provider.OutcomeStored)
	t.notFound("Replay of an address that never was", stored[1])
	t.outcome("Replay of the last", stored[2], provider.OutcomeStored)
	for _, s := range t.replay(t.open(), addresses...) {
		t.notFound("Replay of what was replayed", s)
	}
	w := t.subscribe(t.p, 2, work, other)
	ds := w.receive(2)
	t.once(ds)
	t.ack(ds...)
	w.nothing("each was replayed once")
	for i, id := range map[int]string{0: ids[0], 1: "", 2: ids[1]} {
		if stored[i].ID != id {
			t.Errorf("answer %d of Replay is for job %q; want %q: the job's id where it is known", i, stored[i].ID, id)
		}
	}
	ctx, cancel := t.ctx()
	defer cancel()
	if _, err := t.p.Dead.Get(ctx, "nowhere"); !errors.Is(err, provider.ErrNotFound) || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("Get of an address that never was: %v; want ErrNotFound, with the address", err)
	}
}

func deadReplayCut(t *env) {
	const jobs = 40
	want := t.some(jobs, work)
	t.publish(t.p, want...)
	w := t.subscribe(t.p, jobs, work)
	for _, d := range w.receive(jobs) {
		t.deadLetter(d, failure(1))
	}
	w.end()
	var addresses []string
	for _, l := range t.letters(t.p, provider.DeadFilter{}) {
		addresses = append(addresses, l.Address)
	}
	for i := range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*200*time.Microsecond)
		_, _ = t.p.Dead.Replay(ctx, addresses[i*4:i*4+4]...)
		cancel()
	}
	places := make(map[string]bool)
	for _, l := range t.letters(t.p, provider.DeadFilter{}) {
		places[l.Job.ID] = true
	}
	for _, d := range t.subscribe(t.p, 2*jobs, work).during(2*quiet, 2*jobs) {
		places[d.Job().ID] = true
	}
	for _, j := range want {
		if !places[j.ID] {
			t.Errorf("%s is neither dead nor in its queue after a replay that was cut off", j.ID)
		}
	}
}

func deadReplayRace(t *env) {
	t.bury(t.job(work), failure(1))
	l := t.letter(provider.DeadFilter{})
	var wg sync.WaitGroup
	for _, p := range []*provider.Provider{t.p, t.open(), t.p} {
		wg.Go(func() {
			ctx, cancel := t.ctx()
			defer cancel()
			if stored, err := p.Dead.Replay(ctx, l.Address); err != nil || len(stored) != 1 {
				t.Errorf("Replay from several sides: %+v, %v", stored, err)
			}
		})
	}
	wg.Wait()
	t.subscribe(t.p, 1, work).one()
	if n := len(t.letters(t.p, provider.DeadFilter{})); n != 0 {
		t.Errorf("%d dead letters are left after a replay", n)
	}
}

func deadDiscard(t *env) {
	t.bury(t.job(work), failure(1))
	l := t.letter(provider.DeadFilter{})
	stored := t.discard(t.p, "nowhere", l.Address)
	t.notFound("Discard of an address that never was", stored[0])
	t.outcome("Discard", stored[1], provider.OutcomeStored)
	t.notFound("Discard of what was discarded", t.discard(t.open(), l.Address)[0])
	t.notFound("Replay of what was discarded", t.replay(t.p, l.Address)[0])
	if n := len(t.letters(t.p, provider.DeadFilter{})); n != 0 {
		t.Errorf("%d dead letters are left after a discard", n)
	}
	t.subscribe(t.p, 1, work).nothing("it was discarded")
}

func deadGarbage(t *env) {
	var mu sync.Mutex
	var events []provider.Event
	stop := t.p.Events.Observe(func(e provider.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	})
	defer stop()
	w := t.subscribe(t.p, 5, work)
	garbage := []byte("\xff\x00 this is no record")
	if err := t.h.Garbage(work, garbage); err != nil {
		t.Fatalf("garbage: %v", err)
	}
	j := t.job(work)
	t.publish(t.p, j)
	d := w.one()
	t.same("a job behind bytes that are no record", d.Job(), &j)
	t.ack(d)
	var l provider.DeadLetter
	t.until("the bytes are among the dead letters, while someone receives", func() bool {
		w.nothing("bytes that are no record are not delivered")
		ls := t.letters(t.p, provider.DeadFilter{Queue: work, Class: provider.ClassNoRecord})
		if len(ls) == 1 {
			l = ls[0]
		}
		return len(ls) > 0
	})
	if string(l.Raw) != string(garbage) || l.Failure.Class != provider.ClassNoRecord || l.Address == "" || l.Queue != work || l.Job.ID != "" {
		t.Errorf("the dead letter of bytes that are no record is %+v", l)
	}
	mu.Lock()
	foreign := slices.ContainsFunc(events, func(e provider.Event) bool {
		return e.Kind == provider.ForeignRecord && e.Queue == work && e.Provider == t.p.Name
	})
	mu.Unlock()
	if !foreign {
		t.Errorf("events: %+v; want one of kind %q for queue %s", events, provider.ForeignRecord, work)
	}
	if s := t.replay(t.p, l.Address)[0]; s.Outcome != provider.OutcomeRefused {
		t.Errorf("Replay of bytes that are no record: %s; want refused", s.Outcome)
	}
	t.outcome("Discard of bytes that are no record", t.discard(t.p, l.Address)[0], provider.OutcomeStored)
}
