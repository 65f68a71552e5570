package main

import "github.com/backstage-go/backstage/internal/command"

// topics are pages of help about what several commands share.
func topics() []command.Topic {
	return []command.Topic{
		{Name: "letters", Summary: "how dead letters are chosen", Text: aboutLetters},
		{Name: "batches", Summary: "plans, journals, and what happens when a run is interrupted", Text: aboutBatches},
		{Name: "json", Summary: "the fields of -o json", Text: aboutJSON},
	}
}

const aboutLetters = `Dead letters are named, by operands or in a file, or chosen by flags. Both together
mean those of the named that the flags choose.

An id is the address of a letter, as dead list prints it first, or the id of its job.
A job may have several letters, then all are meant. An id that is the address of one
letter and the job of another is refused; address:17 and job:17 say which.

  backstagectl dead show 1760184000000001 job:A-1009
  backstagectl dead replay -ids ids.txt
  grep -o 'job=[^ ]*' app.log | cut -d= -f2 | backstagectl dead show -ids -

A file has one id a line. Blank lines and those that begin with # are skipped (a job
whose id begins with # is written job:#…). Bad lines are all told, with their
numbers, and then nothing is done.

Flags that choose; all that are given must fit:

  -queue, -task, -class, -job   exactly this
  -reason, -worker              this text is part of the last failure's message, or
                                of its worker's name
  -older-than, -newer-than      died before, or since: 90m, 7d, 1d12h ago, or a time,
                                2025-10-31T12:00:00Z. A letter has the time of its
                                broker's clock, "ago" counts from this computer's.

The classes that Backstage gives: permanent, exhausted, too old, expired, undecodable,
unknown task, crashed, no record.
`

const aboutBatches = `dead replay and dead discard work on a plan: a fixed set of letters, found once, by
their addresses. What dies later is not in it, also not a job of the plan that was
replayed and died again: that is another letter, with another address.

Each letter is read again before it is touched. One that is gone, or is not the one
that was planned, is left alone and reported as gone. So a run that is repeated
replays no job twice. A broker that fails within a replay leaves the letter in one of
the two places, or a copy in both: then the job runs twice, under its one id.

A job is replayed by one letter. If it has several, that is the newest; the others
are left out of the plan, which says how many. Such a plan needs a journal.

With -journal FILE the plan is kept in a file, then what became of its letters, synced
to the disk after each step of at most 100.

  backstagectl dead replay -queue orders -journal r.jsonl    # look at the plan
  backstagectl dead replay -journal r.jsonl -yes             # do exactly that
  backstagectl dead replay -journal r.jsonl -yes             # after Ctrl-C, kill -9, …
  backstagectl dead replay -journal r.jsonl                  # how far is it?

The first and the second may be one, with -yes; and the same command line again goes
on with the file that is there, so it can be restarted as it is. Letters that were
done are not touched again; those that were refused, or duplicates, or unknown, are
tried again. Of a killed run's last step it is not known what became of it: letters
that were replayed are found gone.

Without a journal a run that was interrupted is started again with -older-than and the
time that it printed at its beginning, that of the newest letter of its plan. The
letters that are done are gone by themselves, and what has died since is newer.
`

const aboutJSON = `With -o json every line of standard output is one object. Fields are added, never
renamed; lists are never null. Times are RFC 3339 in UTC, durations seconds.

stats: one for each queue. What the broker cannot tell is null.

  at, queue, depth, oldest_ready_seconds, in_flight, held, dead, oldest_dead_seconds

dead list: one for each letter.

  address          what it is found by
  job, queue, task
  class, reason    of the last failure; reason is its message
  worker, attempt  who ran it then, and which failure that was; 0 if no run failed
  died_at
  replays          how often it was replayed before
  format           of the record; 0 for bytes that are no record
  payload_bytes

dead show: the same, and

  enqueued_at, first_due_at, expires_seconds, ordering_key
  dedupe           {key, for_seconds, until_done}
  counters         {failures, crashes, snoozes, parks}
  requires, headers, root, parent, edge, correlation, trace, actor, tenant
  history          [{at, class, reason, worker, attempt, detail}], oldest first
  replayed         [{at, failures, crashes}], oldest first
  payload          {bytes, sha256, codec, key_id, message, value, note}: message is
                   its type, value the decoded message, or null and note says why

dead replay, dead discard: one for each letter, then one with the sum.

  address, job, queue, task, class
  outcome          planned, replayed, discarded, gone, duplicate, refused, unknown
  holder           the job that holds its key, for duplicate
  error            why, for refused and unknown

  summary          {letters, replayed, discarded, gone, duplicate, refused, unknown,
                   untried, older}: of the whole plan, earlier runs of a journal
                   included; older are letters that were left out of it
  action, done     what was to be done, and whether it was to be done now (-yes)

version: backstage, go
`
