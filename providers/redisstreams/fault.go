package redisstreams

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Error is why Redis did not do what was asked, and what to do about it.
type Error struct {
	// Problem says what is wrong, in words.
	Problem string
	// Remedy says what to do.
	Remedy string
	// Err is what Redis or the connection said.
	Err error
}

// Error returns all of it in one line.
func (e *Error) Error() string {
	said := ""
	if e.Err != nil {
		said = " (" + e.Err.Error() + ")"
	}
	return "redis: " + e.Problem + said + "; " + e.Remedy
}

// Unwrap returns what Redis or the connection said.
func (e *Error) Unwrap() error { return e.Err }

// refusal is what is known of the first word of one of Redis' errors. With each of
// them the command was not done.
type refusal struct {
	word            string
	problem, remedy string
	moved           bool // ask again: another server has the keys, or this one soon
	blocked         bool // nobody can write
}

// refusals is the table of what Redis can say.
func refusals() []refusal {
	return []refusal{
		{word: "OOM", problem: "it has reached maxmemory and takes no more jobs", remedy: "raise maxmemory or let workers catch up; settlements go on", blocked: true},
		{word: "READONLY", problem: "the server is a replica", remedy: "it becomes well when the client finds the master: use sentinels or a cluster, or make it the master", moved: true, blocked: true},
		{word: "MISCONF", problem: "it could not write its snapshot or log to disk, and refuses writes", remedy: "look into its log: its disk is full or fails", blocked: true},
		{word: "NOREPLICAS", problem: "it has fewer replicas than min-replicas-to-write", remedy: "bring replicas back, or lower min-replicas-to-write", blocked: true},
		{word: "LOADING", problem: "it is loading its data", remedy: "wait until it is ready", blocked: true},
		{word: "MASTERDOWN", problem: "it is a replica that has lost its master", remedy: "wait for the failover", moved: true, blocked: true},
		{word: "CLUSTERDOWN", problem: "the cluster does not serve all slots", remedy: "bring its nodes back", moved: true, blocked: true},
		{word: "MOVED", problem: "another node of the cluster has the keys", remedy: "pass a cluster client, or a URL with cluster=true", moved: true},
		{word: "ASK", problem: "the slot is being moved to another node", remedy: "wait until it is there", moved: true},
		{word: "TRYAGAIN", problem: "the slot is being moved to another node", remedy: "wait until it is there", moved: true},
		{word: "CROSSSLOT", problem: "the keys are in several slots", remedy: "report it: all keys of a step must have one tag"},
		{word: "BUSY", problem: "a script of somebody's runs for long", remedy: "wait, or end it with SCRIPT KILL"},
		{word: "NOAUTH", problem: "it wants a password", remedy: "set user and password"},
		{word: "WRONGPASS", problem: "it does not accept user and password", remedy: "correct them"},
		{word: "NOPERM", problem: "the user may not do it", remedy: "allow the user @write, @read, @scripting, @connection, @blocking and the keys of the namespace"},
		{word: "WRONGTYPE", problem: "a key of the namespace belongs to something else", remedy: "use another namespace"},
	}
}

// refusalOf finds what is known of an error of Redis.
func refusalOf(err error) (refusal, bool) {
	if err == nil {
		return refusal{}, false
	}
	var said redis.Error
	if !errors.As(err, &said) {
		return refusal{}, false
	}
	word, _, _ := strings.Cut(strings.TrimPrefix(said.Error(), "ERR "), " ")
	for _, r := range refusals() {
		if r.word == word {
			return r, true
		}
	}
	return refusal{}, false
}

// explained adds to an error what is known of it.
func explained(err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	if r, ok := refusalOf(err); ok {
		return &Error{Problem: r.problem, Remedy: r.remedy, Err: err}
	}
	if broken(err) {
		return unreachable(err)
	}
	return err
}

func unreachable(err error) error {
	return &Error{Problem: "it cannot be reached", Remedy: "check the address, the network and the server", Err: err}
}

// broken reports whether the connection failed, and not the command.
func broken(err error) bool {
	if err == nil {
		return false
	}
	var said redis.Error
	return !errors.As(err, &said)
}

// passes reports whether waiting may help.
func passes(err error) bool {
	r, known := refusalOf(err)
	return broken(err) || known && (r.moved || r.blocked)
}

// doubtful reports whether what failed may have been done all the same: unless
// Redis refused it as a whole, or it was never sent.
func doubtful(err error) bool {
	if err == nil {
		return false
	}
	var said redis.Error
	if errors.As(err, &said) {
		return strings.Contains(said.Error(), "script:") // it failed in the middle
	}
	var dial *unreachableError
	return !errors.As(err, &dial) && !errors.Is(err, redis.ErrPoolTimeout) && !errors.Is(err, redis.ErrClosed)
}

// unknown reports whether an outcome is not known: what failed may have been done, or
// was done and has not reached enough replicas.
func unknown(err error) bool {
	if err == nil {
		return false
	}
	var few *tooFewError
	return errors.As(err, &few) || doubtful(err)
}

// saidError is an error of Redis that came as text, inside a reply.
type saidError string

func (e saidError) Error() string { return string(e) }

// RedisError makes it one of go-redis' errors.
func (saidError) RedisError() {}
