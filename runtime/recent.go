package backstage

import (
	"sync"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// recent remembers for a while what became of runs whose settlement may not be on
// record: a redelivery of the same state of the job then gets that, instead of
// running again.
type recent struct {
	keep time.Duration

	mu    sync.Mutex
	runs  map[recentKey]recentRun
	order []recentKey // by time
}

type recentKey struct {
	job   jobKey
	stamp provider.Counters
}

type recentRun struct {
	after settlement
	until time.Time
}

// mostRecent is how many runs are remembered. Where settlements are not confirmed that
// is every one: beyond it the oldest are forgotten, and may run again.
const mostRecent = 1 << 16

// put remembers what a redelivery is to get.
func (r *recent) put(key jobKey, stamp provider.Counters, after settlement, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs == nil {
		r.runs = make(map[recentKey]recentRun)
	}
	r.forget(now)
	k := recentKey{key, stamp}
	r.runs[k] = recentRun{after, now.Add(r.keep)}
	r.order = append(r.order, k)
}

// take returns what a redelivery is to get. It is kept: the same state may come
// again.
func (r *recent) take(key jobKey, stamp provider.Counters) (settlement, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.runs) == 0 {
		return settlement{}, false
	}
	run, ok := r.runs[recentKey{key, stamp}]
	return run.after, ok && time.Now().Before(run.until)
}

// forget drops what is too old.
func (r *recent) forget(now time.Time) {
	n := 0
	for _, k := range r.order {
		run, ok := r.runs[k]
		if ok && now.Before(run.until) && len(r.order)-n < mostRecent {
			break
		}
		delete(r.runs, k)
		n++
	}
	r.order = r.order[n:]
}
