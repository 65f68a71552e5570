// Package embedded is a provider without a server: the whole contract on one
// SQLite file, which any number of processes of one host may share. It is for
// development, for tests, and for production on a single host.
//
//	p, err := embedded.Open("/var/lib/shop/jobs.db", embedded.Config{})
//
// # What it promises
//
// Each call that returns without an error is on the disk (Config.Synchronous says
// how firmly). A job's next jobs, its end, its claim and its place in its ordering
// key change in one transaction. A delivery is fenced by the number of its run,
// which no run of any job ever has again, so that a worker that lost its lease
// changes nothing; leases and due times follow the host's clock, which all
// processes share. A clock that is set back delays what is due and the takeover of
// a dead worker's jobs by as much.
//
// Calls share transactions: whatever arrives while the disk syncs is written with
// the next sync. So many small calls at once are fast, and one at a time takes a
// sync each.
//
// # Several processes
//
// Processes take turns in writing, by locks on the file that ends in -lock, and
// wake each other up (by inotify on Linux, elsewhere they look a hundred times a
// second). A process that is stopped (SIGSTOP, a debugger, a frozen container) in
// the middle of a transaction holds the file until it goes on or is killed. The
// others stop with it: after two seconds they say so, by the event Blocked and by
// Health ("another process has held its write lock for 3s, stopped or stuck"), and
// wait; calls whose context ends meanwhile are refused, and nothing of them is
// stored; handlers run on until a lease has passed unconfirmed, and what they did is
// settled when the file is free; Open fails after Config.OpenWait. Looking (Stats,
// Dead) goes on. What to do: find the process (lsof on the -lock file lists all who have
// it open; ps shows a stopped one in state T) and let it continue (SIGCONT) or kill it.
// Killing it harms nothing.
//
// The file must be on a local disk: network file systems have neither the locks
// nor the shared memory. Never open the file in the same process by other means
// than SQLite, not even to read it: closing it would drop SQLite's locks. Processes
// that share a file may run different versions of this package; tables are only
// ever added to. A file of a newer version is refused by an older program that
// opens it.
//
// # Backup and restore
//
// Backup copies the file while it is in use, and so does
//
//	sqlite3 jobs.db "vacuum into 'copy.db'"
//
// Copying the file itself is safe only when no process has it open, and then
// together with the -wal file if there is one. To restore: stop every process that
// has the file open, remove the -wal and -shm files, put the copy in its place,
// start again. A process whose file is removed or replaced while it has it open
// stores nothing from then on and says so, in errors and in Health.
//
// A restored file knows nothing of what happened since the copy. Jobs that were
// waiting, held or running then run again, though they may have been done since;
// those that ran then count a crash, because their workers never came back. Jobs
// published since are gone, dead letters replayed or discarded since are there
// again, and claims are as they were, if their time has not passed. Handlers with
// an idempotency key (the job's id) are as safe as with any redelivery.
//
// # When the file cannot be written
//
// A full disk, a file that became read-only, a failing disk or a damaged file:
// every call that needed to write returns an *Error that says what is wrong and
// what to do, and nothing that was not written is acknowledged. Where the disk
// failed in the middle of a commit, publishing answers "unknown", because the
// commit may turn up when the file is opened again. Workers wait and go on when
// the trouble is over; a damaged file ends them. On a full disk settlements are
// done before publishing calls, because they make room inside the file.
//
// # Size
//
// A file grows with its backlog, by about 250 MB a million small jobs, and gives
// pages back to the disk when it is idle. The -wal file stays around 20 MB, and
// grows while somebody reads the file in one long transaction.
package embedded
