// Command backstagectl is the operator's tool: it shows how the queues of a broker
// stand, and lists, shows, replays and discards dead letters. It works on every
// provider, which is given by a URL, and needs neither the program whose jobs these
// are nor its code.
//
//	export BACKSTAGE_URL=embedded:/var/lib/shop/jobs.db
//	backstagectl stats -watch
//	backstagectl dead list -queue orders -newer-than 2h
//	backstagectl dead show 1760184000000001 -proto proto
//	backstagectl dead replay -queue orders -journal replay.jsonl         # look at the plan
//	backstagectl dead replay -journal replay.jsonl -yes -rate 50         # do it, and go on after a crash
//	backstagectl dead discard -older-than 30d -yes
//
// backstagectl help COMMAND says more about each; help letters says how dead letters
// are chosen, help batches what happens when a run is interrupted, help json what
// the fields are. It is a program of its own because it brings in the client of every
// broker, which backstage does not.
//
// # What it changes
//
// Nothing but by dead replay and dead discard with -yes, and a broker is never made:
// an embedded file must be there. (Opening it brings its tables up to this version,
// and needs the file's write lock for a moment, as every program does.) Both commands
// work on a plan, a fixed set of letters by their addresses, which is printed and
// not done without -yes. A letter is read again before it is touched, and left alone
// if it is not the one that was planned. So what is interrupted, at any instruction,
// can be repeated: no letter is replayed twice, and what has died since is not
// touched, also not a job that was replayed and died again. What remains is a
// provider's own promise: a replay that is cut off leaves the letter in one of the
// two places, or a copy in both, and then the job runs twice under its one id.
//
// # What it shows
//
// Payloads are decoded only by a schema, and what that marks with protobuf's
// debug_redact is not shown, at any depth; fields that the schema does not know are
// counted. Bytes are never printed. The texts that handlers, workers and clients
// wrote themselves are shown as they are: messages of errors, stacks, headers, keys.
// Characters that a terminal would obey are escaped. User names and passwords in
// URLs are kept out of messages, plans and journals.
//
// # Exit codes
//
//	0  it worked
//	1  it failed, or was done in part: the broker could not be asked, something that
//	   was named is not there, a letter was refused or what became of it is unknown
//	2  wrong usage
package main
