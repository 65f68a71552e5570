package redisstreams

import (
	"strings"
	"sync"
)

// group is the consumer group of every queue's stream.
const group = "workers"

// parked is the consumer that has what was given back. Its lease is nothing, so
// that the next worker takes it.
const parked = "released@0"

// field is the field of a stream's entries that has the record.
const field = "job"

// scope names whose held jobs and claims: the provider's own, or a borrower's.
type scope struct {
	lent bool
	name string
}

// keyring makes the names of keys. All keys that one script changes share a hash
// tag, the part in braces.
type keyring struct {
	namespace string
	tags      Tags
	whole     string // the tag of all queues, where they share one

	mu     sync.RWMutex
	queues map[place]*queueKeys // made before: there are as many as queues
}

func newKeyring(namespace string, tags Tags) *keyring {
	return &keyring{namespace: namespace, tags: tags, whole: "{" + namespace + "}", queues: make(map[place]*queueKeys)}
}

// place is a queue in a scope.
type place struct {
	scope scope
	queue string
}

// registry has the names of all queues.
func (k *keyring) registry() string { return k.whole + ":queues" }

// tag begins the keys of a queue.
func (k *keyring) tag(queue string) string {
	if k.tags == TagQueue {
		return "{" + k.namespace + "/" + queue + "}"
	}
	return k.whole
}

// within begins the keys of a scope.
func (k *keyring) within(s scope, queue string) string {
	switch {
	case !s.lent:
		return k.tag(queue)
	case k.tags == TagQueue:
		return "{" + k.namespace + "~" + s.name + "}:lent:" + escaped(s.name)
	}
	return k.tag(queue) + ":lent:" + escaped(s.name)
}

// escaped leaves no colon in a scope's name, so that it ends where the next word
// of the key begins.
func escaped(s string) string {
	return strings.NewReplacer("%", "%25", ":", "%3A").Replace(s)
}

// claim is the key of a claim.
func (k *keyring) claim(s scope, key string) string {
	if !s.lent && k.tags == TagQueue {
		return "{" + k.namespace + "~}:claim:" + key
	}
	return k.within(s, "") + ":claim:" + key
}

// queueKeys are where the jobs of a queue are, ready or held. Every script that stores
// a job is given them, in this order.
type queueKeys struct {
	stream string // ready and running jobs, in entries with one field
	bound  string // the most unsettled jobs, if there is a bound
	held   string // when each copy of a held job is due, in milliseconds
	bodies string // the copies of held jobs, by the job's id
	due    string // when the first held job of each queue is due
	begun  string // which promoter publishes which copy
	seq    string // counts the held jobs with an ordering key
}

func (h *queueKeys) keys() []string {
	return []string{h.stream, h.bound, h.held, h.bodies, h.due, h.begun, h.seq}
}

// queue returns the keys of a queue in a scope. A borrower's jobs are only held here:
// the stream and the bound of its queues do not exist.
func (k *keyring) queue(s scope, queue string) *queueKeys {
	at := place{s, queue}
	k.mu.RLock()
	h := k.queues[at]
	k.mu.RUnlock()
	if h != nil {
		return h
	}
	within := k.within(s, queue)
	h = &queueKeys{
		stream: within + ":q:" + queue,
		bound:  within + ":bound:" + queue,
		held:   within + ":held:" + queue,
		bodies: within + ":bodies:" + queue,
		due:    within + ":due",
		begun:  within + ":begun:" + queue,
		seq:    within + ":seq",
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queues[at] = h
	return h
}

// order is the key of the held jobs of an ordering key, in the order in which they
// are due.
func (k *keyring) order(s scope, queue, key string) string {
	return k.within(s, queue) + ":order:" + escaped(queue) + ":" + key
}

// letterKeys are where the dead letters of a queue are.
type letterKeys struct {
	dead    string // their addresses, by the microsecond of death
	letters string // their records, by address
}

func (k *keyring) letters(queue string) letterKeys {
	own := k.tag(queue)
	return letterKeys{dead: own + ":dead:" + queue, letters: own + ":letters:" + queue}
}

// groupKeys are what is kept of a queue's deliveries beside its consumer group.
type groupKeys struct {
	groups   string // the generation of each queue's group
	released string // how often entries were given back
	looked   string // when somebody last looked for dead workers' jobs
}

func (k *keyring) group(queue string) groupKeys {
	own := k.tag(queue)
	return groupKeys{groups: own + ":groups", released: own + ":released:" + queue, looked: own + ":looked"}
}
