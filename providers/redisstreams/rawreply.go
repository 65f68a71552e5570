package redisstreams

import (
	"bytes"
	"errors"
	"strconv"
)

// rawReply is an answer of Redis as it came, which is read from its beginning. Entries
// are most of what a worker is sent: made into values before they are made into jobs,
// they would be copied three times.
type rawReply struct {
	rest []byte
	bad  bool // it was not what was asked for: all that is read is empty
}

var errMalformed = errors.New("redis: an answer is not what was asked for")

// rawReplyOf returns what came, or the error that it is.
func rawReplyOf(came []byte) (*rawReply, error) {
	if line, _, _ := bytes.Cut(came, crlf()); len(line) > 0 && line[0] == '-' {
		return nil, saidError(line[1:])
	}
	return &rawReply{rest: came}, nil
}

func crlf() []byte { return []byte("\r\n") }

// list reads the head of a list, and returns how many things are in it.
func (r *rawReply) list() int { return r.head('*') }

// text reads a string, which is valid as long as the reply is.
func (r *rawReply) text() []byte {
	n := r.head('$')
	if len(r.rest) < n+len(crlf()) {
		r.bad = true
	}
	if r.bad {
		return nil
	}
	text := r.rest[:n]
	r.rest = r.rest[n+len(crlf()):]
	return text
}

// head reads the head of a list or a string, and returns its length: 0 for what is not
// there.
func (r *rawReply) head(kind byte) int {
	line, rest, whole := bytes.Cut(r.rest, crlf())
	if r.bad || !whole || len(line) == 0 || line[0] != kind {
		r.bad = true
		return 0
	}
	n, err := strconv.Atoi(string(line[1:]))
	r.rest, r.bad = rest, err != nil
	return max(0, n)
}

// entry reads the id and the fields of an entry.
func (r *rawReply) entry() (id string, entry record) {
	r.list()
	id = string(r.text())
	n := r.list()
	var fields []any
	for i := 0; i < n; i += 2 {
		name, value := r.text(), r.text()
		if n == 2 && string(name) == field {
			return id, record{value, true}
		}
		fields = append(fields, string(name), string(value))
	}
	return id, recordOf(fields)
}
