package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/backstage-go/backstage/cmd/backstagectl/internal/batch"
	"github.com/backstage-go/backstage/internal/command"
)

// report says what is planned and what became of it.
type report struct {
	batching *batching
	console  *command.Console
	of       *batch.Plan
	letters  map[string]batch.Letter // by address
	results  map[string]batch.Result // of all runs
	tally    tally
	told     time.Time // when progress was last told
	failed   error     // of printing
}

func newReport(b *batching, c *command.Console, plan *batch.Plan, journal *batch.Journal) *report {
	r := &report{batching: b, console: c, of: plan, letters: map[string]batch.Letter{}, results: map[string]batch.Result{}}
	for _, l := range plan.Letters {
		r.letters[l.Address] = l
	}
	if journal != nil {
		for address, result := range journal.Results {
			r.results[address] = result
		}
	}
	r.count()
	return r
}

func (r *report) json() bool { return *r.batching.format == "json" }

// tally counts letters by what became of them.
type tally struct {
	Letters   int `json:"letters"`
	Replayed  int `json:"replayed"`
	Discarded int `json:"discarded"`
	Gone      int `json:"gone"`
	Duplicate int `json:"duplicate"`
	Refused   int `json:"refused"`
	Unknown   int `json:"unknown"`
	Untried   int `json:"untried"`
	// Older are letters that were left out of the plan.
	Older int `json:"older"`
}

// failed reports whether something remains that somebody has to look at.
func (t *tally) failed() bool { return t.Refused+t.Unknown+t.Untried > 0 }

// of returns where an outcome is counted.
func (t *tally) of(o batch.Outcome) *int {
	switch o {
	case batch.Replayed:
		return &t.Replayed
	case batch.Discarded:
		return &t.Discarded
	case batch.Gone:
		return &t.Gone
	case batch.Duplicate:
		return &t.Duplicate
	case batch.Refused:
		return &t.Refused
	case batch.Unknown:
		return &t.Unknown
	}
	return &t.Untried
}

// count counts all letters of the plan, and the ids of which there was none.
func (r *report) count() {
	r.tally = tally{Letters: len(r.of.Letters) + len(r.of.Missing), Gone: len(r.of.Missing), Older: r.of.Older}
	for _, l := range r.of.Letters {
		*r.tally.of(r.results[l.Address].Outcome)++
	}
}

// resultRow is what became of a letter in JSON.
type resultRow struct {
	Address string        `json:"address"`
	Job     string        `json:"job"`
	Queue   string        `json:"queue"`
	Task    string        `json:"task"`
	Class   string        `json:"class"`
	Outcome batch.Outcome `json:"outcome"`
	Holder  string        `json:"holder"`
	Error   string        `json:"error"`
}

// planned is the outcome of a letter of a plan that is only printed.
const planned batch.Outcome = "planned"

func rowFor(l batch.Letter, r batch.Result) resultRow {
	return resultRow{l.Address, l.Job, l.Queue, l.Task, l.Class, cmp.Or(r.Outcome, planned), r.Holder, withoutUser(r.Error)}
}

// plan prints what would be done.
func (r *report) plan() error {
	if r.json() {
		for _, l := range r.of.Letters {
			if err := r.console.JSONLine(rowFor(l, r.results[l.Address])); err != nil {
				return err
			}
		}
		return r.console.JSONLine(summary{r.tally, r.of.Action, false})
	}
	out := r.console.Out
	fmt.Fprintf(out, "to %s: %s of %s\n", r.of.Action, count(len(r.of.Letters), "dead letter"), r.of.URL)
	if err := r.groups().write(out, "  "); err != nil {
		return err
	}
	if err := r.first(); err != nil {
		return err
	}
	r.notes()
	if done := len(r.results); done > 0 {
		fmt.Fprintf(out, "\nso far:\n")
		if err := r.numbers(); err != nil {
			return err
		}
	}
	switch {
	case len(r.of.Letters) == 0:
	case r.batching.path == "":
		fmt.Fprintln(out, "\nNothing is done yet. To do it: the same with -yes, which looks again;\nwith -journal FILE exactly this plan is kept.")
	case len(r.results) == 0:
		fmt.Fprintf(out, "\nNothing is done yet. The plan is kept in %s. To do it:\n  %s\n", r.batching.path, r.goOn())
	default:
		fmt.Fprintf(out, "\nTo go on: %s\n", r.goOn())
	}
	return nil
}

// groups counts the letters by queue, task and class, most first.
func (r *report) groups() *table {
	type group struct{ queue, task, class string }
	counts := map[group]int{}
	for _, l := range r.of.Letters {
		counts[group{l.Queue, l.Task, l.Class}]++
	}
	var groups []group
	for g := range counts {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.queue, b.queue), cmp.Compare(a.task, b.task), cmp.Compare(a.class, b.class))
	})
	t := &table{right: []int{0}}
	for i, g := range groups {
		if i == 0 {
			t.row("LETTERS", "QUEUE", "TASK", "CLASS")
		}
		t.row(fmt.Sprint(counts[g]), clean(g.queue), orNone(g.task), clean(g.class))
	}
	return t
}

func have(n int) string {
	if n == 1 {
		return "1 letter has"
	}
	return fmt.Sprintf("%d letters have", n)
}

func orNone(s string) string { return clean(cmp.Or(s, "-")) }

// first prints the first few letters.
func (r *report) first() error {
	const few = 5
	var t table
	for i, l := range r.of.Letters {
		if i == 0 {
			t.row("ADDRESS", "DIED", "JOB")
		}
		if i == few {
			t.row(fmt.Sprintf("… and %d more", len(r.of.Letters)-few))
			break
		}
		t.row(clean(l.Address), age(r.batching.broker.now().Sub(l.DiedAt))+" ago", orNone(l.Job))
	}
	if len(t.rows) > 0 {
		fmt.Fprintln(r.console.Out)
	}
	return t.write(r.console.Out, "  ")
}

// notes says what is odd about the plan.
func (r *report) notes() {
	out := r.console.Out
	if n := r.of.Older; n > 0 {
		fmt.Fprintf(out, "\n%s left out: a newer one of the same job is in the plan, and a job is replayed\nonce. What is left can be named by its address, or discarded.\n", count(n, "letter"))
	}
	if n := r.of.Unclaimed; n > 0 {
		fmt.Fprintf(out, "\n%s a dedupe key whose claim this broker does not keep: it is replayed without\ntaking the claim again, so that a job with the same key may run beside it.\n", have(n))
	}
	if n := len(r.of.Missing); n > 0 {
		fmt.Fprintf(out, "\n%s not found among the dead letters:\n", count(n, "id"))
		for i, id := range r.of.Missing {
			if i == 5 {
				fmt.Fprintf(out, "  … and %d more\n", n-i)
				break
			}
			fmt.Fprintf(out, "  %s\n", id)
		}
	}
}

// begin says what starts now.
func (r *report) begin() {
	b := r.batching
	rate := "as fast as the broker takes them"
	if b.rate > 0 {
		rate = fmt.Sprintf("at most %v a second", b.rate)
	}
	left := r.tally.Untried + r.tally.Duplicate + r.tally.Refused + r.tally.Unknown
	where := ""
	if b.path != "" {
		where = "; progress is kept in " + b.path
	}
	fmt.Fprintf(r.console.Err, "%sing %s, %s%s\n", r.of.Action, count(left, "dead letter"), rate, where)
	r.told = b.broker.now()
	if b.path == "" && left > 1 {
		r.howToGoOn()
	}
}

// add takes the results of a step.
func (r *report) add(results []batch.Result) {
	for _, result := range results {
		r.results[result.Address] = result
		if r.json() && r.failed == nil {
			r.failed = r.console.JSONLine(rowFor(r.letters[result.Address], result))
		}
	}
	const often = 5 * time.Second
	if now := r.batching.broker.now(); now.Sub(r.told) >= often {
		r.told = now
		fmt.Fprintf(r.console.Err, "%d of %d\n", len(r.results), len(r.of.Letters))
	}
}

// summary is the last line of JSON.
type summary struct {
	Summary tally        `json:"summary"`
	Action  batch.Action `json:"action"`
	Done    bool         `json:"done"`
}

// end prints what became of all.
func (r *report) end() error {
	r.count()
	if r.failed != nil {
		return r.failed
	}
	if r.json() {
		return r.console.JSONLine(summary{r.tally, r.of.Action, true})
	}
	if err := r.numbers(); err != nil {
		return err
	}
	return r.remaining()
}

// numbers prints the tally. What was done comes first.
func (r *report) numbers() error {
	t := &table{right: []int{1}}
	line := func(o batch.Outcome, about string) { t.row(string(o), fmt.Sprint(*r.tally.of(o)), about) }
	line(r.of.Action.Done(), "")
	line(batch.Gone, "no longer dead letters when it was their turn")
	if r.of.Action == batch.Replay {
		line(batch.Duplicate, "they stay: another job holds their key")
	}
	line(batch.Refused, "they stay")
	line(batch.Unknown, "they may be "+string(r.of.Action.Done())+" or not")
	if r.tally.Untried > 0 {
		line(batch.Untried, "")
	}
	return t.write(r.console.Out, "")
}

// remaining names the letters that somebody has to look at.
func (r *report) remaining() error {
	const most = 20
	var t table
	n := 0
	for _, l := range r.of.Letters {
		result := r.results[l.Address]
		why := result.Error
		switch result.Outcome {
		case batch.Duplicate:
			why = "its key is held by job " + result.Holder
		case batch.Refused, batch.Unknown:
			why = cmp.Or(why, "the broker did not say")
		default:
			continue
		}
		if n++; n <= most {
			t.row(clean(l.Address), orNone(l.Job), string(result.Outcome), clean(withoutUser(why)))
		}
	}
	if n == 0 {
		return nil
	}
	fmt.Fprintln(r.console.Out)
	t.rows = append([][]string{{"ADDRESS", "JOB", "OUTCOME", "WHY"}}, t.rows...)
	if err := t.write(r.console.Out, ""); err != nil {
		return err
	}
	if n > most {
		fmt.Fprintf(r.console.Out, "… and %d more; -o json names all\n", n-most)
	}
	return nil
}

// howToGoOn says how the rest of a batch is done after an interruption.
func (r *report) howToGoOn() {
	if r.batching.path != "" {
		fmt.Fprintf(r.console.Err, "to go on: %s\n", r.goOn())
		return
	}
	newest := r.of.Letters[len(r.of.Letters)-1].DiedAt.Add(time.Nanosecond)
	fmt.Fprintf(r.console.Err, "to go on if it is interrupted: the same with -older-than %s,\nso that what has died since is left alone\n", newest.Format(time.RFC3339Nano))
}

func (r *report) goOn() string {
	return fmt.Sprintf("backstagectl dead %s -journal %s -yes", r.of.Action, r.batching.path)
}
