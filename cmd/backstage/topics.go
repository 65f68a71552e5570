package main

import "github.com/backstage-go/backstage/internal/command"

// topics are pages of help about schemas, rather than about a command.
func topics() []command.Topic {
	return []command.Topic{
		{Name: "keys", Summary: "how dedupe and ordering_key are written", Text: aboutKeys},
		{Name: "durations", Summary: "how timeout, backoff and other times are written", Text: aboutDurations},
	}
}

const aboutKeys = `A key template is text with fields of the task's request in braces:

  dedupe: "order/{order_id}"                  one field
  dedupe: "{customer.id}/{order_id}"          a field of a message in it
  ordering_key: "{tenant?}/{customer_id}"     tenant may be empty
  dedupe: "{{draft}}/{order_id}"              {{ and }} stand for { and }

As a grammar:

  key  = { text | "{" path [ "?" ] "}" }
  path = field { "." field }                  at most 8 fields

The last field is a string, a bool, an integer or an enum, which counts by its
number. It is not repeated, no map, no member of a oneof, and neither bytes nor a
float, which has no exact text. What is wrong is found by backstage generate.

A field without a value makes the enqueue fail, with an error that names the field
(backstage.EmptyKeyError), because an empty id would make one key of every job:

  - an empty string
  - a field with presence (optional, or of a message) that is not set
  - a number or an enum without presence that is 0

A field with presence that is set to 0, and both values of a bool, are values.
With a question mark a field may be empty.

Values are percent-escaped, so that "a/b" and "c" never make the key of "a" and
"b/c". A key of more than 200 bytes keeps its beginning and ends in a hash of the
whole.

dedupe: while the key of a job holds, a second job of the same task with the same
key is a duplicate. dedupe_for says how long it holds, "24h" for example, or "done"
for until the job's outcome. A job that is dead-lettered gives its key up at once.

ordering_key: jobs of one queue with the same key start one at a time, whatever
their task, in the order in which they entered the queue.
`

const aboutDurations = `A duration is a string with its unit, as Go writes it, and with days:

  timeout: "30s"       delay: "250ms"       expires: "1h30m"
  max_age: "7d"        dedupe_for: "1d12h"

dedupe_for also takes "done": until the job's outcome. The longest is 36500d.

A backoff is the wait before a retry:

  backoff: "30s"       constant
  backoff: "1s..5m"    it grows exponentially from the first to the second, with
                       full jitter: each wait is random between 0 and that

A time that is not given is the service's (backstage.v1.defaults), else the
built-in one: timeout 1m, backoff 1s..1m, max_age 7d, no delay, no expiry. An
explicit zero is an error, except for a delay that takes back the service's.
backstage tasks shows what holds.
`
