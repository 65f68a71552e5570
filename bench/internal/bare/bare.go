// Package bare is a job queue on SQLite as one writes it by hand for one program:
// one table, one partial index, and what the embedded provider promises of
// durability and no more. There are no ids, no keys, no delays, no leases to
// extend, no fences, no attempts to bound, no dead letters.
//
// It is written to be fast, with the same driver and settings as the provider, so
// that the difference is the price of the rest: one goroutine writes, and puts
// whatever waits into one transaction; jobs are inserted up to 64 rows a statement,
// claimed in one statement, and deleted in one.
package bare

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

const schema = `
create table job (
  id      integer primary key,
  state   integer not null default 0, -- 0 waits, 1 runs
  due     integer not null,
  lease   integer not null default 0,
  attempt integer not null default 0,
  body    blob    not null
);
create index job_waiting on job (due, id) where state = 0;`

const settings = `
pragma journal_mode = wal;
pragma synchronous = full;
pragma wal_autocheckpoint = 4000;
pragma cache_size = -65536;`

const lease = 30 * time.Second

// Queue is an open file.
type Queue struct {
	db   *sql.DB
	conn *sql.Conn

	insertMany, insertSome, insertOne *sql.Stmt
	begin, commit, claim, remove      *sql.Stmt

	mu      sync.Mutex
	waiting requests
	spare   requests
	signal  chan struct{}
	quit    chan struct{}
	ended   chan struct{}
	err     error // of the writer; read after ended
}

// requests are what waits for the writer.
type requests struct {
	inserts []insertion
	acks    []ack
	want    int // jobs to claim
}

type insertion struct {
	body []byte
	done chan struct{}
}

type ack struct {
	id   int64
	done chan struct{}
}

type job struct {
	id   int64
	body []byte
}

// Open makes a new file.
func Open(ctx context.Context, path string) (*Queue, error) {
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	q := &Queue{db: db, signal: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{})}
	if q.conn, err = db.Conn(ctx); err != nil {
		return nil, err
	}
	if _, err := q.conn.ExecContext(ctx, settings+schema); err != nil {
		return nil, err
	}
	if err := q.prepare(ctx); err != nil {
		return nil, err
	}
	return q, nil
}

func (q *Queue) prepare(ctx context.Context) error {
	insert := func(rows int) string {
		return "insert into job (due, body) values (?, ?)" + strings.Repeat(", (?, ?)", rows-1)
	}
	for _, one := range []struct {
		into  **sql.Stmt
		query string
	}{
		{&q.insertMany, insert(64)},
		{&q.insertSome, insert(8)},
		{&q.insertOne, insert(1)},
		{&q.begin, "begin immediate"},
		{&q.commit, "commit"},
		{&q.claim, `update job set state = 1, lease = ?, attempt = attempt + 1 where id in
			(select id from job where state = 0 and due <= ? order by due, id limit ?) returning id, body`},
		{&q.remove, "delete from job where id in (select value from json_each(?))"},
	} {
		stmt, err := q.conn.PrepareContext(ctx, one.query)
		if err != nil {
			return fmt.Errorf("%s: %w", one.query, err)
		}
		*one.into = stmt
	}
	return nil
}

// Run works through a number of jobs with a number of workers, and returns when
// the last one is deleted on disk. A job runs when its claim is on disk, and its
// worker takes the next one when its deletion is.
func (q *Queue) Run(workers, count int, handle func(body []byte)) error {
	jobs := make(chan job, workers)
	acked := make(chan struct{}, workers)
	go q.write(jobs)
	for range workers {
		go func() {
			done := make(chan struct{}, 1)
			for j := range jobs {
				handle(j.body)
				q.submit(func(r *requests) { r.acks = append(r.acks, ack{j.id, done}) })
				<-done
				acked <- struct{}{}
			}
		}()
	}
	q.submit(func(r *requests) { r.want = workers })
	for range count {
		select {
		case <-acked:
		case <-q.ended:
			return q.err
		}
	}
	close(q.quit)
	<-q.ended
	return q.err
}

// Enqueuer stores jobs for one producer.
type Enqueuer struct {
	queue *Queue
	done  chan struct{}
}

// Enqueuer returns one.
func (q *Queue) Enqueuer() *Enqueuer { return &Enqueuer{q, make(chan struct{}, 1)} }

// Enqueue returns when the job is on disk.
func (e *Enqueuer) Enqueue(body []byte) error {
	e.queue.submit(func(r *requests) { r.inserts = append(r.inserts, insertion{body, e.done}) })
	select {
	case <-e.done:
		return nil
	case <-e.queue.ended:
		return e.queue.err
	}
}

// Close closes the file.
func (q *Queue) Close() error { return q.db.Close() }

func (q *Queue) submit(add func(*requests)) {
	q.mu.Lock()
	add(&q.waiting)
	q.mu.Unlock()
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// write is the one goroutine that writes. The workers want as many jobs as have
// been deleted, for each frees one of them.
func (q *Queue) write(jobs chan<- job) {
	defer close(q.ended)
	defer close(jobs)
	want := 0
	for {
		select {
		case <-q.signal:
		case <-q.quit:
			return
		}
		r := q.take()
		want += r.want + len(r.acks)
		got, err := q.transact(r, want)
		if err != nil {
			q.err = err
			return
		}
		want -= len(got)
		for _, j := range got {
			jobs <- j
		}
		for _, a := range r.acks {
			a.done <- struct{}{}
		}
		for _, i := range r.inserts {
			i.done <- struct{}{}
		}
		clear(r.inserts)
		q.spare = requests{inserts: r.inserts[:0], acks: r.acks[:0]}
	}
}

// yields is how often the writer lets the others run before it takes what waits:
// each that just got its answer may bring more, for which another sync would be due.
const yields = 3

func (q *Queue) take() requests {
	for range yields {
		runtime.Gosched()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.waiting
	q.waiting = q.spare
	return r
}

// transact does all that waits in one transaction, and returns what it claimed.
func (q *Queue) transact(r requests, want int) ([]job, error) {
	ctx := context.Background()
	if _, err := q.begin.ExecContext(ctx); err != nil {
		return nil, err
	}
	if len(r.acks) > 0 {
		if _, err := q.remove.ExecContext(ctx, ids(r.acks)); err != nil {
			return nil, err
		}
	}
	now := time.Now()
	if err := q.insert(ctx, r.inserts, now); err != nil {
		return nil, err
	}
	var got []job
	if want > 0 {
		var err error
		if got, err = q.claimed(ctx, want, now); err != nil {
			return nil, err
		}
	}
	_, err := q.commit.ExecContext(ctx)
	return got, err
}

func (q *Queue) insert(ctx context.Context, list []insertion, now time.Time) error {
	args := make([]any, 0, 2*64)
	for len(list) > 0 {
		stmt, rows := q.insertOne, 1
		switch {
		case len(list) >= 64:
			stmt, rows = q.insertMany, 64
		case len(list) >= 8:
			stmt, rows = q.insertSome, 8
		}
		args = args[:0]
		for _, one := range list[:rows] {
			args = append(args, now.UnixNano(), one.body)
		}
		if _, err := stmt.ExecContext(ctx, args...); err != nil {
			return err
		}
		list = list[rows:]
	}
	return nil
}

func (q *Queue) claimed(ctx context.Context, want int, now time.Time) ([]job, error) {
	rows, err := q.claim.QueryContext(ctx, now.Add(lease).UnixNano(), now.UnixNano(), want)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	got := make([]job, 0, want)
	for rows.Next() {
		var j job
		if err := rows.Scan(&j.id, &j.body); err != nil {
			return nil, err
		}
		got = append(got, j)
	}
	return got, rows.Err()
}

func ids(acks []ack) string {
	b := []byte{'['}
	for i, a := range acks {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, a.id, 10)
	}
	return string(append(b, ']'))
}
