// Package tracker knows what became of the records of one partition, for one consumer
// group, and says what the group's next commit has to be. It is a state machine: it
// has no client, clock, goroutine or lock, and the same calls have the same results.
// A Tracker is for one goroutine at a time; its owner locks.
//
// # Offset and metadata
//
// Records are settled in any order, but a group commits one offset. The tracker commits
// the offset of the lowest record that is not settled, and beside it, in the string
// that a commit may carry:
//
//   - which records above that offset are settled;
//   - the mark: records below it may have been started;
//   - the crash line: records below it were below the mark when a worker died. They
//     have one crash each;
//   - notes, on single records of which these lines do not tell enough: how often they
//     crashed, failed and were put off, not before when they start again, whether they
//     may be running now.
//
// Commits are made one at a time. A settlement is final when a commit that was made
// after it has been accepted; what one commit did not get on record is in the next.
//
// # Starts
//
// A record may be started when a commit is on record that says so. Most are started
// below the mark, which is moved ahead by a chunk at a time, never past the last record
// seen. One below the crash line, or with a note, has each of its starts put on record
// by itself, when it is among the next to start, so that a job that kills its worker is
// counted exactly. Nobody starts anything before a commit of its own is on record;
// therefore a worker that gets a partition back, and finds on record what it knew, can
// tell that nobody else has run anything meanwhile.
//
// # Crashes
//
// Who loads a commit counts a crash for each unsettled record that may be running by
// it: for those between crash line and mark by moving the line up to the mark, for
// those with a note in the note. So a record that was only about to be started, when its
// worker died, has one crash too many. Because of the mark that happens to it once at
// most: from then on it is about to be started only after a commit of its own.
//
// # Handing over
//
// Before a partition goes to another worker in order, a commit lowers the mark and says
// of each record that still runs that it was handed over. The next owner counts nothing
// for it, and puts its own start on record like any other: its own death counts. That
// of the worker before it, whose handler may go on for a while, cannot be seen from the
// partition any more. So that a job which kills its workers cannot hide behind
// rebalances for ever, every eighth handing over of a running record counts as a crash.
//
// # Ordering keys
//
// Of the records with one key only the first may start. The next one may when the
// settlement of the one before is on record, so that no crash can turn their order
// round. For the same reason a later one that is below the crash line has not run, and
// has no crash.
//
// # Room
//
// The metadata is bounded, by default to what a broker takes. It has no bad case: a run
// is started only if, whatever then happens to it and to all others that run, the next
// commit fits. Each run has the space of a note reserved, with all that may be in it,
// which is more than its settlement can take; a crash needs no space, because it moves
// a line or changes a number in a note. One more note's space is kept free for
// the lowest unsettled record, so that it can always start: with it the offset moves,
// and what is settled behind it needs no space any more.
package tracker
