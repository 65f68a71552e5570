package redisstreams

import "strconv"

// request gathers the keys and arguments of a script.
type request struct {
	keys  []string
	args  []any
	homes map[place]int
	names []string
}

// small are the numbers that most arguments are, as Redis is sent them.
func digits(n int) string {
	const ready = "0123456789"
	if n >= 0 && n < len(ready) {
		return ready[n : n+1]
	}
	return strconv.Itoa(n)
}

// home returns the number of a queue's home, whose keys come before all others. All
// homes are asked for before the first other key.
func (r *request) home(k *keyring, s scope, queue string) int {
	at := place{s, queue}
	if n, ok := r.homes[at]; ok {
		return n
	}
	if r.homes == nil {
		r.homes = make(map[place]int)
	}
	h := k.home(s, queue)
	r.keys = append(r.keys, h.keys()...)
	r.names = append(r.names, queue)
	r.homes[at] = len(r.names)
	return len(r.names)
}

// own returns the provider's own queues among them.
func (r *request) own() []string {
	if len(r.homes) == 0 {
		return r.names
	}
	own := make([]string, 0, len(r.homes))
	for at := range r.homes {
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

// sayHomes adds the number of homes and their names.
func (r *request) sayHomes() {
	r.say(digits(len(r.names)))
	for _, name := range r.names {
		r.say(name)
	}
}

// sayJob adds a job, as store.lua reads it.
func (r *request) sayJob(k *keyring, e *entry) {
	bounded, claim, ms, delay, order := "0", 0, "0", "", 0
	if e.bounded {
		bounded = "1"
	}
	if e.dedupe.Key != "" {
		claim, ms = r.key(k.claim(e.scope, e.dedupe.Key)), claimTime(e.dedupe)
	}
	if e.held {
		delay = microseconds(e.delay)
	}
	if e.order != "" {
		order = r.key(k.order(e.scope, e.queue, e.order))
	}
	r.say(digits(r.home(k, e.scope, e.queue)), e.body, e.id, bounded, digits(claim), ms, delay, e.stamp, digits(order))
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
