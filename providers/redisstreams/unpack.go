package redisstreams

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// unpack makes deliveries of what the script returned.
func (d *desk) unpack(ctx context.Context, asked time.Time, lanes []*lane, reply []any) []*delivery {
	for i, l := range lanes {
		l.generation = textOf(nth(listOf(reply[0]), i))
		if ghosts := numberOf(nth(listOf(reply[3]), i)); ghosts > 0 {
			d.tell(provider.Ghost, l, ghosts, "entries that a dead worker had are not in the stream any more, and were acknowledged")
		}
	}
	for _, n := range listOf(reply[4]) {
		d.tell(provider.GroupRecreated, lanes[numberOf(n)-1], 1, "the consumer group had vanished and was made anew: what is not settled is delivered from the beginning")
	}
	u := unpacking{asked: asked}
	for _, v := range listOf(reply[1]) {
		left := listOf(v)
		l := lanes[numberOf(left[0])-1]
		u.add(l, textOf(left[1]), numberOf(left[2]), numberOf(left[3]), recordOf(listOf(left[4])))
	}
	for _, v := range listOf(reply[2]) {
		waited := listOf(v)
		for _, v := range listOf(waited[1]) {
			entry := listOf(v)
			u.add(lanes[numberOf(waited[0])-1], textOf(nth(entry, 0)), 1, 0, recordOf(listOf(nth(entry, 1))))
		}
	}
	return d.finish(ctx, &u)
}

func (d *desk) tell(kind provider.Kind, l *lane, n int64, message string) {
	d.sub.store.news.emit(provider.Event{Kind: kind, Queue: l.queue, Count: n, Message: message})
}

// unpacking is what came in one answer.
type unpacking struct {
	asked time.Time // when the leases began, at the earliest
	list  []*delivery
	odd   []oddEntry
}

// oddEntry is an entry that has no job.
type oddEntry struct {
	delivery *delivery
	bytes    []byte
}

// record is what an entry has: a job's record or, if it is not one of ours, all of it,
// to read. The bytes may be the answer's own, which the next one replaces: a job that is
// made of them keeps none.
type record struct {
	bytes []byte
	ours  bool
}

// addStream adds the entries of a stream, which were delivered for the first time.
func (u *unpacking) addStream(lanes []*lane, came *rawReply) {
	came.list()
	name := came.text()
	i := slices.IndexFunc(lanes, func(l *lane) bool { return l.keys.stream == string(name) })
	for range came.list() {
		if id, entry := came.entry(); i >= 0 && !came.bad {
			u.add(lanes[i], id, 1, 0, entry)
		}
	}
}

// add adds an entry that was delivered so many times, and given back so many times.
// All others of these deliveries are crashes.
func (u *unpacking) add(l *lane, id string, deliveries, released int64, entry record) {
	d := &delivery{lane: l, id: id, deliveries: deliveries, generation: l.generation, confirmed: u.asked}
	job, err := provider.Unmarshal(entry.bytes)
	if !entry.ours || err != nil {
		u.odd = append(u.odd, oddEntry{d, bytes.Clone(entry.bytes)})
		return
	}
	job.Counters.Crashes += int32(max(0, deliveries-1-released))
	d.job = job
	u.list = append(u.list, d)
}

// recordOf finds the record among the fields of an entry.
func recordOf(fields []any) record {
	for i := 0; i+1 < len(fields); i += 2 {
		if textOf(fields[i]) == field {
			return record{[]byte(textOf(fields[i+1])), true}
		}
	}
	var all strings.Builder
	for i := 0; i+1 < len(fields); i += 2 {
		fmt.Fprintf(&all, "%q: %q\n", textOf(fields[i]), textOf(fields[i+1]))
	}
	return record{[]byte(all.String()), false}
}

// finish notes the runs, and dead-letters what is no job.
func (d *desk) finish(ctx context.Context, u *unpacking) []*delivery {
	for _, run := range u.list {
		run.lane.knows(run)
	}
	for _, odd := range u.odd {
		odd.delivery.lane.knows(odd.delivery)
	}
	for _, odd := range u.odd {
		if !d.bury(ctx, odd) {
			break // nor would the others be: jobs that start now must not wait for each of them
		}
	}
	return u.list
}

// burying is how long Receive waits for bytes that are no record to be put away. If
// that fails, their lease ends and the next worker tries.
const burying = time.Second

func (d *desk) bury(ctx context.Context, odd oddEntry) bool {
	apart, cancel := context.WithTimeout(context.WithoutCancel(ctx), burying)
	defer cancel()
	err := odd.delivery.settle(apart, &settlement{kind: endDead, body: odd.bytes})
	if err == nil {
		d.sub.store.foreign(odd.delivery.lane.queue)
	}
	return err == nil
}
