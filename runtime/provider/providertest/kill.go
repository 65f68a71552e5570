package providertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// killChecks kill processes of their own: a worker of the runtime, or a client,
// with SIGKILL at a point of a job's life, or stop it there for longer than its
// lease. Another worker ends what it left.
func killChecks() []check {
	const (
		nothingLost = "No crash at any instruction loses an accepted job: "
		handler     = "the job is run again, its crash counted and no attempt used up, and its chain ends once, or twice with the same ids."
	)
	all := []check{
		killCheck(atReceived, "step", nothingLost+handler),
		killCheck(atStarted, "step", nothingLost+handler),
		killCheck(atEffect, "step", nothingLost+handler),
		killCheck(atNext, "step", "A step's next jobs are durable before the step is acknowledged: a crash in between runs the step again, and its next jobs have the same ids.", needHandoffGap),
		killCheck(atAck, "step", nothingLost+handler),
		killCheck(atAcked, "step", "Ack ends the job and stores its next jobs before it returns, whatever becomes of its worker."),
		killCheck(atRetry, "fail", nothingLost+"one whose failure is not on record is run again as the same attempt.", needRetry),
		killCheck(atRetried, "fail", nothingLost+"one whose retry is on record is run again as the next attempt, and no crash is counted.", needRetry),
		killCheck(atHeld, "fail", "A job to retry is held before its source is acknowledged: a crash in between runs it again and loses nothing.", needHolding),
		killCheck(atDeadLetter, "dead", nothingLost+"one that was to be dead-lettered is run again and dead-lettered.", needDead),
		killCheck(atDeadLettered, "dead", nothingLost+"one that was dead-lettered is among the dead letters.", needDead),
		{
			name:  "kill/claimed",
			rule:  "A claim that is only pending does not make another job a duplicate: a client that dies between claim and publish loses no one's job.",
			needs: []need{needLentClaims},
			run:   killClaimed,
		}, {
			name: "kill/published",
			rule: "What Publish stored survives the client, which may try the same id again.",
			run:  killPublished,
		}, {
			name:  "kill/stopped in its handler",
			rule:  "When the lease is lost the handler's context is cancelled with a cause, and what it does then counts as nothing.",
			needs: []need{needSignals},
			run:   func(t *env) { killStopped(t, atStarted) },
		}, {
			name:  "kill/stopped before its ack",
			rule:  "The late settlement of a worker that was stopped for longer than its lease is refused where JobFacts.RefusesLate says so, and touches no newer run anywhere.",
			needs: []need{needSignals},
			run:   func(t *env) { killStopped(t, atAck) },
		}, {
			name: "kill/at random",
			rule: "Workers that are killed at any moment, again and again, under load lose no job, and dead-letter none.",
			run:  killRandom,
		},
	}
	for i := range all {
		all[i].needs = append([]need{needProcess}, all[i].needs...)
	}
	return all
}

func killCheck(at point, chain, rule string, needs ...need) check {
	return check{name: "kill/" + string(at), rule: rule, needs: needs, run: func(t *env) {
		t.often(func(i, lane int) { killWorker(t, at, fmt.Sprintf("%s-%03d", chain, i), lane) })
	}}
}

// times is how often each point is tried.
func times() int {
	const few, soak = 2, 100
	switch n, _ := strconv.Atoi(os.Getenv("BACKSTAGE_SOAK")); {
	case n == 1:
		return soak
	case n > 1:
		return n
	}
	return few
}

// often tries something as often as it is to be tried, some of it at once, each in
// a lane of its own, until the first failure.
func (t *env) often(try func(i, lane int)) {
	const lanes = 8
	var wg sync.WaitGroup
	for lane := range min(lanes, times()) {
		wg.Go(func() {
			for i := lane; i < times() && !t.Failed(); i += lanes {
				try(i, lane)
			}
		})
	}
	wg.Wait()
}

func needProcess(t *env) string {
	switch {
	case t.h.Address == "":
		return "not measured here: the storage ends with this process"
	case t.round == lent && t.h.LenderAddress == "":
		return "not measured here: the lender's storage ends with this process"
	case t.p.Delays == nil && t.facts().Retries != provider.RetriesAll:
		return "absent: no worker starts without Delays"
	}
	return ""
}

func needSignals(*env) string {
	if !canStop {
		return "not measured here: this system cannot stop a process"
	}
	return ""
}

// needHandoffGap is for the moment between the next jobs and the end of a job.
func needHandoffGap(t *env) string {
	if t.facts().AtomicHandoff && needLentClaims(t) != "" {
		return "absent: the handoff is one step (JobFacts.AtomicHandoff)"
	}
	return ""
}

func needLentClaims(t *env) string {
	if t.p.Claims == nil || !t.p.Claims.Facts().Lent {
		return "absent: publish and claim are one step"
	}
	return ""
}

// needHolding is for retries that the runtime holds in a lent store.
func needHolding(t *env) string {
	if t.p.Delays == nil || t.retries(false) {
		return "absent: the provider retries by itself"
	}
	return ""
}

// processLease is the lease of workers that are killed. A slow machine must be
// able to keep it.
func (t *env) processLease() time.Duration { return max(t.h.Lease, 5*time.Second) }

// killWorker kills a worker at a point and lets another end the chain.
func killWorker(t *env, at point, name string, lane int) {
	c := t.newChain(lane)
	p := t.spawn(plan{Stop: at, Chain: name, Ledger: c.ledger, Lane: lane, Lease: t.processLease(), Slots: 2})
	p.hear("runs")
	id := t.begin(c, name)
	p.hear("at " + string(at))
	p.kill()
	stop := t.inherit(c)
	defer stop()
	if name[:4] == "dead" {
		t.diedOnce(at, id)
		return
	}
	ran := t.ends(c, name)
	t.sameIDs(name, ran)
	t.sparing(at, name, ran)
	t.crashesOf(at, ran)
}

// sameIDs checks that all runs of a step had one id.
func (t *env) sameIDs(name string, ran map[string][]entry) {
	t.Helper()
	for task, runs := range ran {
		for _, e := range runs {
			if e.id != runs[0].id {
				t.Errorf("chain %s: %s ran as %s and as %s; want one id", name, task, runs[0].id, e.id)
			}
		}
	}
}

// sparing checks that no step ran more often than a crash explains.
func (t *env) sparing(at point, name string, ran map[string][]entry) {
	t.Helper()
	most := map[string]int{"First": 2, "Second": 2, "Third": 2}
	if at == atNext || at == atAcked && !t.facts().Confirmed {
		// The worker may have begun what it had stored, before it died; and an end that was
		// only sent may die with it.
		most["Second"], most["Third"] = 3, 4
	}
	if name[:4] == "fail" {
		most["First"] = 4 // two attempts, and one of each again
	}
	for task, n := range most {
		if got := len(ran[task]); got < 1 || got > n {
			t.Errorf("chain %s, whose worker was killed %s: %s ran %d times; want 1 to %d: %+v", name, at, task, got, n, ran[task])
		}
	}
}

// crashesOf checks how the runs of the heir are counted.
func (t *env) crashesOf(at point, ran map[string][]entry) {
	t.Helper()
	want := 1
	task := "First"
	switch {
	case at == atAcked || at == atRetried:
		want = 0
	case at == atNext && t.round == lent:
		task = "Second"
	}
	ours := func(e entry) bool { return e.pid == os.Getpid() }
	// A worker may start what the step before has stored while the end of that step is not
	// on record yet. Then it dies of both, and the step before makes another copy.
	copied := task == "Second" && slices.ContainsFunc(ran["First"], ours)
	heirs, counted := 0, false
	for _, e := range ran[task] {
		if !ours(e) {
			continue
		}
		heirs++
		counted = counted || e.crashes >= want
		if copied && e.crashes == 0 {
			continue
		}
		if e.crashes != want && (t.facts().ExactCrashes || e.crashes < want) && at != atHeld {
			t.Errorf("%s, whose worker was killed %s, ran with %d crashes; want %d", task, at, e.crashes, want)
		}
		if at == atRetried && e.attempt != 2 {
			t.Errorf("%s, whose retry is on record, ran as attempt %d; want 2", task, e.attempt)
		}
	}
	if copied && heirs > 0 && !counted {
		t.Errorf("%s, whose worker was killed %s, ran %d times again, and no run counts the death", task, at, heirs)
	}
	if at == atAcked && t.facts().Confirmed && heirs > 0 {
		t.Errorf("%s was acknowledged on record and ran again", task)
	}
}

// diedOnce waits for the dead letter of a job.
func (t *env) diedOnce(at point, id string) {
	t.Helper()
	var letters []provider.DeadLetter
	t.until("the job is among the dead letters", func() bool {
		letters = t.letters(t.p, provider.DeadFilter{JobID: id})
		return len(letters) > 0
	})
	time.Sleep(quiet)
	letters = t.letters(t.p, provider.DeadFilter{JobID: id})
	if len(letters) > 2 {
		t.Errorf("a job whose worker was killed %s has %d dead letters; want 1 or 2", at, len(letters))
	}
	for _, l := range letters {
		if l.Failure.Class != provider.ClassPermanent {
			t.Errorf("a job whose worker was killed %s is dead as %q; want %q", at, l.Failure.Class, provider.ClassPermanent)
		}
	}
}

func killClaimed(t *env) {
	c := t.newChain(0)
	var names []string
	for i := range times() {
		name := fmt.Sprintf("step-%03d", i)
		names = append(names, name)
		p := t.spawn(plan{Enqueue: name, Stop: atClaimed, Chain: name})
		p.hear("at " + string(atClaimed))
		p.kill()
	}
	for _, name := range names {
		t.admits(c, name)
	}
	stop := t.inherit(c)
	defer stop()
	for _, name := range names {
		if n := len(t.ends(c, name)["First"]); n != 1 {
			t.Errorf("chain %s, whose first client died before it published, ran %d times; want 1", name, n)
		}
	}
}

// admits enqueues a chain until it is stored, and checks that it is never called
// a duplicate of a job that is nowhere.
func (t *env) admits(c *chain, name string) {
	t.Helper()
	deadline := time.Now().Add(3 * t.patience) // the pending claim has to run out
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		receipt, err := c.enqueue(ctx, name, "")
		cancel()
		switch {
		case err == nil && receipt.Duplicate:
			t.Fatalf("chain %s is a duplicate of %s, which was never published", name, receipt.ID)
		case err == nil:
			return
		case !errors.Is(err, provider.ErrDedupePending) && !errors.Is(err, context.DeadlineExceeded):
			t.Fatalf("enqueue of a key that a dead client has pending: %v", err)
		case time.Now().After(deadline):
			t.Fatalf("the pending claim of a dead client holds for more than %v", 3*t.patience)
		}
	}
}

func killPublished(t *env) {
	t.often(func(i, lane int) {
		name := fmt.Sprintf("step-%03d", i)
		c := t.newChain(lane)
		p := t.spawn(plan{Enqueue: name, Stop: atPublished, Chain: name, Lane: lane})
		p.hear("at " + string(atPublished))
		p.kill()
		stop := t.inherit(c)
		ran := t.ends(c, name)
		stop()
		t.sameIDs(name, ran)
		id := ran["First"][0].id
		ctx, cancel := t.ctx()
		if receipt, err := c.enqueue(ctx, name, id); err != nil || receipt.ID != id {
			t.Errorf("the id of an enqueue that was cut off, again: %+v, %v; want it stored", receipt, err)
		}
		cancel()
	})
}

// freeze stops a process between two of its writes: one that is stopped in the
// middle may hold a storage that is a file, for all.
func (t *env) freeze(p *process) {
	t.Helper()
	for range 30 {
		if err := p.freeze(); err != nil {
			t.Fatalf("stop the process: %v", err)
		}
		if t.takesWrites() {
			return
		}
		if err := p.thaw(); err != nil {
			t.Fatalf("let the process go on: %v", err)
		}
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
	}
	t.Fatalf("while a process is stopped nothing can be stored, whenever it is stopped")
}

// takesWrites reports whether the storages take writes just now.
func (t *env) takesWrites() bool {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	stored := t.p.Jobs.Publish(ctx, t.some(1, "probe"), provider.PublishOptions{})
	if stored[0].Outcome != provider.OutcomeStored {
		return false
	}
	if t.p.Claims == nil {
		return true
	}
	_, err := t.p.Claims.Claim(ctx, []provider.Claim{{Key: "probe", Owner: "probe", For: time.Second}})
	return err == nil
}

// killStopped stops a worker until another has ended its job, and lets it go on.
func killStopped(t *env, at point) {
	t.often(func(i, lane int) {
		name := fmt.Sprintf("step-%03d", i)
		c := t.newChain(lane)
		p := t.spawn(plan{Stop: at, Chain: name, Ledger: c.ledger, Lane: lane, Lease: t.processLease(), Slots: 2})
		p.hear("runs")
		t.begin(c, name)
		p.hear("at " + string(at))
		t.freeze(p)
		stop := t.inherit(c)
		t.ends(c, name)
		if err := p.thaw(); err != nil {
			t.Fatalf("let the process go on: %v", err)
		}
		p.goOn()
		switch {
		case at == atStarted:
			if cause := p.hear("cause "); cause != "true" {
				t.Errorf("the context of a handler whose lease was lost: its cause is ErrLeaseLost: %s; want true", cause)
			}
		case t.facts().RefusesLate:
			if got := p.hear("ack "); got != "lost" {
				t.Errorf("Ack of a worker that was stopped for longer than its lease: %s; want lost", got)
			}
		default:
			p.hear("ack ")
		}
		time.Sleep(quiet)
		p.kill()
		ran := t.ends(c, name)
		stop()
		t.sameIDs(name, ran)
		t.sparing(at, name, ran)
	})
}

// allEnd waits until so many chains have ended, and returns their runs. It gives up
// when nothing has run for a while: of many chains none ends for long, because the next
// job of each is behind the first of all others.
func (t *env) allEnd(c *chain, chains int) map[string]map[string][]entry {
	t.Helper()
	before, changed := 0, time.Now()
	for ; ; time.Sleep(time.Second / 2) {
		runs, ended, all := t.ledger(c), 0, 0
		for _, ran := range runs {
			all += len(ran["First"]) + len(ran["Second"]) + len(ran["Third"])
			if len(ran["Third"]) > 0 {
				ended++
			}
		}
		switch {
		case ended >= chains:
			return runs
		case all > before:
			before, changed = all, time.Now()
		case time.Since(changed) > t.patience:
			t.Fatalf("%d of %d chains ended after their workers were killed, and %d jobs are dead", ended, chains, t.letterCount())
		}
	}
}

// runsMore waits until there are so many runs, but not for ever: whether any is missing
// is looked for at the end.
func (t *env) runsMore(c *chain, runs int) {
	for end := time.Now().Add(t.patience / 8); len(t.entries(c)) < runs && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
}

func killRandom(t *env) {
	kills := 2 * times()
	chains := 60 * kills
	c := t.newChain(0)
	for i := range chains {
		t.begin(c, fmt.Sprintf("step-%03d", i))
	}
	const slots = 4
	for n := range kills {
		before := len(t.entries(c))
		p := t.spawn(plan{Ledger: c.ledger, Lease: t.processLease(), Slots: slots})
		p.hear("runs")
		if n%2 == 1 { // or, on a slow machine, what starts first would die with all of them
			t.runsMore(c, min(before+2*slots, 3*chains))
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		p.kill()
	}
	stop := t.inherit(c)
	defer stop()
	runs := t.allEnd(c, chains)
	again := -3 * chains
	for name, ran := range runs {
		t.sameIDs(name, ran)
		again += len(ran["First"]) + len(ran["Second"]) + len(ran["Third"])
	}
	t.Logf("%d chains, %d kills: %d runs more than needed", chains, kills, again)
	if n := t.letterCount(); n > 0 {
		t.Errorf("%d jobs are dead after their workers were killed", n)
	}
}
