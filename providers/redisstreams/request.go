package redisstreams

import "strconv"

// request gathers the keys and arguments of a script.
type request struct {
	keys   []string
	args   []any
	queues map[place]int // their numbers
	names  []string      // of these
}

// digits writes a number as Redis is sent it. Most have one digit.
func digits(n int) string {
	const ready = "0123456789"
	if n >= 0 && n < len(ready) {
		return ready[n : n+1]
	}
	return strconv.Itoa(n)
}

// flag is how scripts are told yes or no.
func flag(is bool) string {
	if is {
		return "1"
	}
	return "0"
}

// queue returns the number of a queue, whose keys come before all others. All queues are
// asked for before the first other key.
func (r *request) queue(k *keyring, s scope, queue string) int {
	at := place{s, queue}
	if n, ok := r.queues[at]; ok {
		return n
	}
	if r.queues == nil {
		r.queues = make(map[place]int)
	}
	h := k.queue(s, queue)
	r.keys = append(r.keys, h.keys()...)
	r.names = append(r.names, queue)
	r.queues[at] = len(r.names)
	return len(r.names)
}

// own returns the provider's own queues among them.
func (r *request) own() []string {
	if len(r.queues) == 0 {
		return r.names
	}
	own := make([]string, 0, len(r.queues))
	for at := range r.queues {
		if !at.scope.lent {
			own = append(own, at.queue)
		}
	}
	return own
}

// key adds a key, and returns its place.
func (r *request) key(key string) int {
	r.keys = append(r.keys, key)
	return len(r.keys)
}

// say adds arguments.
func (r *request) say(args ...any) { r.args = append(r.args, args...) }

// sayQueues adds the number of queues and their names.
func (r *request) sayQueues() {
	r.say(digits(len(r.names)))
	for _, name := range r.names {
		r.say(name)
	}
}

// sayJob adds a job, as store.lua reads it.
func (r *request) sayJob(k *keyring, e *entry) {
	claim, ms, delay, order := 0, "0", "", 0
	if e.dedupe.Key != "" {
		claim, ms = r.key(k.claim(e.scope, e.dedupe.Key)), claimTime(e.dedupe)
	}
	if e.held {
		delay = microseconds(e.delay)
	}
	if e.order != "" {
		order = r.key(k.order(e.scope, e.queue, e.order))
	}
	r.say(digits(r.queue(k, e.scope, e.queue)), e.body, e.id, flag(e.bounded), digits(claim), ms, delay, e.stamp, digits(order))
}

// What a script returns is a list of lists.

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

func textOf(v any) string {
	s, _ := v.(string)
	return s
}

func numberOf(v any) int64 {
	n, _ := v.(int64)
	return n
}

// at returns an element of a list, or nil.
func nth(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}
