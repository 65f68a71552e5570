package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

const sqlBury = "insert into dead (n, q, at, task, class, id, raw, body) values (?, ?, ?, ?, ?, ?, ?, ?)"

// roomForDead reports whether there may be one more dead letter.
func (t *transaction) roomForDead() bool {
	if t.letters < 0 {
		t.row("select bound from queue where q = 1", nil, &t.mostDead)
		t.letters = 0
		if t.mostDead > 0 {
			t.row("select coalesce(sum(dead), 0) from queue", nil, &t.letters)
		}
	}
	if t.mostDead == 0 {
		return true
	}
	if t.letters >= t.mostDead {
		return false
	}
	t.letters++
	return true
}

// bury moves a job among the dead letters and frees its key and its claim.
func (t *transaction) bury(s *settlement) {
	d := s.d
	t.tally(d.q).depth--
	t.leave(d.q, d.key, d.pos)
	if s.kind == kindForeign {
		t.buryForeign(d.q, s.body)
		return
	}
	t.tally(d.q).dead++
	t.exec(sqlBury, t.next(), d.q, t.now, d.job.Task, s.class, d.job.ID, 0, s.body)
	if s.claims {
		t.free(scopeOwn, d.job.Dedupe.Key, d.job.ID)
	}
}

// buryForeign keeps bytes that are no record, in the file's own queue of that
// name, which it returns.
func (t *transaction) buryForeign(q int64, body []byte) string {
	var name string
	t.row("select name from queue where q = ?", []any{q}, &name)
	own := t.queue(scopeOwn, name)
	t.tally(own).dead++
	t.exec(sqlBury, t.next(), own, t.now, "", provider.ClassNoRecord, "", 1, body)
	return name
}

// foreign reports bytes that were no record, once they are on record as such.
func (s *store) foreign(queues []string) {
	for _, queue := range queues {
		s.emit(provider.Event{Kind: provider.ForeignRecord, Queue: queue, Count: 1, Message: "bytes that are no job were dead-lettered"})
	}
}

// letters are provider.DeadLetters.
type letters struct{ store *store }

const (
	sqlLetters = "select d.n, q.name, d.at, d.raw, d.body from dead d join queue q on q.q = d.q where "
	pageSize   = 100
)

// List returns dead letters: provider.DeadLetters.
func (l *letters) List(ctx context.Context, filter provider.DeadFilter, page string) ([]provider.DeadLetter, string, error) {
	limit := filter.Limit
	if limit <= 0 {
		limit = pageSize
	}
	where, args, err := conditions(filter, page)
	if err != nil {
		return nil, "", err
	}
	var found []provider.DeadLetter
	err = l.store.readRows(ctx, sqlLetters+where+" order by d.n desc limit ?", append(args, limit+1), func(rows *sql.Rows) error {
		letter, err := scanLetter(rows)
		found = append(found, letter)
		return err
	})
	if err != nil || len(found) <= limit {
		return found, "", err
	}
	found = found[:limit]
	return found, found[limit-1].Address, nil
}

// conditions turns a filter into SQL.
func conditions(filter provider.DeadFilter, page string) (string, []any, error) {
	where, args := []string{"true"}, []any(nil)
	add := func(condition string, arg any) {
		where, args = append(where, condition), append(args, arg)
	}
	if filter.Queue != "" {
		add("d.q = (select q from queue where scope = 0 and name = ?)", filter.Queue)
	}
	if filter.Task != "" {
		add("d.task = ?", filter.Task)
	}
	if filter.Class != "" {
		add("d.class = ?", filter.Class)
	}
	if filter.JobID != "" {
		add("d.id = ?", filter.JobID)
	}
	if !filter.Since.IsZero() {
		add("d.at >= ?", nanoseconds(filter.Since))
	}
	if !filter.Until.IsZero() {
		add("d.at < ?", nanoseconds(filter.Until))
	}
	if page != "" {
		n, err := strconv.ParseInt(page, 10, 64)
		if err != nil {
			return "", nil, fmt.Errorf("list dead letters: no such page: %q", page)
		}
		add("d.n < ?", n)
	}
	return strings.Join(where, " and "), args, nil
}

// nanoseconds is a time as letters have it. One that is too far away for that becomes
// the farthest.
func nanoseconds(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// scanLetter reads one dead letter.
func scanLetter(rows *sql.Rows) (provider.DeadLetter, error) {
	var (
		letter provider.DeadLetter
		n, at  int64
		raw    bool
		body   []byte
	)
	if err := rows.Scan(&n, &letter.Queue, &at, &raw, &body); err != nil {
		return letter, err
	}
	letter.Address, letter.At = strconv.FormatInt(n, 10), time.Unix(0, at)
	job, err := provider.Unmarshal(body)
	if raw || err != nil {
		letter.Raw = body
		letter.Failure = provider.Failure{At: letter.At, Class: provider.ClassNoRecord, Message: "the bytes are not a job record"}
		return letter, nil
	}
	letter.Job = job
	if len(job.History) > 0 {
		letter.Failure = job.History[len(job.History)-1]
	}
	return letter, nil
}

// Get returns one dead letter: provider.DeadLetters.
func (l *letters) Get(ctx context.Context, address string) (provider.DeadLetter, error) {
	var letter provider.DeadLetter
	n, err := strconv.ParseInt(address, 10, 64)
	if err != nil {
		n = 0 // no letter's
	}
	found := false
	err = l.store.readRows(ctx, sqlLetters+"d.n = ?", []any{n}, func(rows *sql.Rows) error {
		found = true
		letter, err = scanLetter(rows)
		return err
	})
	if err == nil && !found {
		err = notFound(address)
	}
	return letter, err
}
