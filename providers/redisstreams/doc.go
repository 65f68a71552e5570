// Package redisstreams is a provider on Redis Streams: jobs, delays, claims, numbers
// and dead letters on one Redis server, on one with replicas and sentinels, or on a
// cluster. It needs Redis 7.0 or newer. It keeps no order per key: a worker or a client
// with a task that has an ordering_key is refused at start-up.
//
//	p, err := redisstreams.Open(ctx, redisstreams.Config{URL: "redis://localhost:6379"})
//
// # What it promises
//
// A nil error means that the master has it on its record. A job's next jobs, its end
// and its claim change in one step (with TagQueue: its next jobs in other queues
// before, and claims apart). A delivery is fenced on the server, by its entry, its
// worker, the number of the entry's deliveries and the generation of its group, so that
// a worker that lost its lease settles nothing and takes nothing back. Due times and
// leases follow Redis' clock: a clock that is set back delays what is due, and the
// takeover of a dead worker's jobs, by as much.
//
// Calls share commands: whatever arrives while one is under way goes with the next, and
// a lone call goes at once. A job under load costs a small fraction of a command for
// each of enqueue, delivery and end. An idle worker sends less than three commands a
// second for each hash slot, however many queues it serves.
//
// # What Redis promises
//
// How much a confirmed job is worth is a setting of the server:
//
//	appendonly yes, appendfsync always    it survives a power cut
//	appendonly yes, appendfsync everysec  a power cut may take the last second; so may the
//	                                      death of Redis alone, while its disk is slow
//	appendonly no                         when Redis stops, all since its last snapshot is
//	                                      gone
//
// What is lost in that way comes back in its earlier state: jobs enqueued then are gone,
// and jobs that ended then are there again and run once more. Replication is
// asynchronous: a failover loses what had not reached the new master, in the same way.
// Config.WaitReplicas waits for replicas, and turns that into an outcome which is known
// not to be known; it makes it rarer and cannot exclude it, because sentinels and
// clusters may still elect a replica that lacks it.
//
// A maxmemory-policy that evicts takes jobs, or claims, away. It must be noeviction:
// then a full server refuses new jobs, and goes on with settlements and held jobs, which
// give room. Both settings are looked at when the provider is opened, and an event of
// kind Degraded says so if they are weak, or if the server does not tell.
//
// # Keys
//
// A namespace ("backstage") and a queue ("mail") have these keys. All of a namespace are
// in one slot of a cluster, because they share the tag in braces. With TagQueue the tag
// of a queue's keys is {backstage/mail}.
//
//	{backstage}:queues         set     the names of all queues
//	{backstage}:q:mail         stream  ready and running jobs; field "job" has the record,
//	                                   group "workers" says who runs what
//	{backstage}:groups         hash    the generation of each queue's group
//	{backstage}:released:mail  hash    how often a running entry was given back
//	{backstage}:looked         hash    when anybody last looked for dead workers' jobs
//	{backstage}:held:mail      zset    "STATE ID" of each held job, by the millisecond
//	                                   in which it is due; STATE has its counters
//	                                   and a hash of its task
//	{backstage}:bodies:mail    hash    their records, by id
//	{backstage}:due            zset    the queues that hold something, by their first due
//	{backstage}:dead:mail      zset    dead letters, by the microsecond of death
//	{backstage}:letters:mail   hash    their records
//	{backstage}:claim:KEY      string  "c:ID", or "p:ID" while pending, with a time to live;
//	                                   without one it ends with the job
//	{backstage}:bound:mail     string  the most unsettled jobs, if it is bounded
//	{backstage}:lent:SCOPE:…   …       held, bodies, due and claim of who borrows (Lend);
//	                                   begun: which promoter publishes which job; seq and
//	                                   order:… of jobs with an ordering key
//
// A record is a protobuf message, backstage.v1.Record. With redis-cli:
//
//	XINFO GROUPS {backstage}:q:mail               who is how far; lag is what waits
//	XPENDING {backstage}:q:mail workers - + 10    what runs, where, for how long since its
//	                                              last heartbeat, and how often it was
//	                                              delivered
//	XINFO CONSUMERS {backstage}:q:mail workers    workers, as NAME@LEASE in milliseconds;
//	                                              released@0 has what was given back
//	ZRANGE {backstage}:held:mail 0 9 WITHSCORES   what is due next
//
// Entries that are settled leave the stream; nothing is ever trimmed. Never use XTRIM or
// MAXLEN on a job stream: it destroys jobs, running ones included. An entry that is
// deleted while it waits is gone, and its claim, if it had one until done, has to be
// deleted by hand. One that is deleted while it runs ends its run's lease. What a dead
// worker had and somebody deleted is acknowledged and reported (Ghost). XGROUP
// DELCONSUMER drops what a worker has: those jobs never run. Anything else in a stream
// is dead-lettered as bytes, and reported (ForeignRecord).
//
// # Workers that die, and groups that vanish
//
// A worker's lease is in its consumer's name, and a heartbeat starts it again. Any
// worker of the queue with a free slot takes over what has been silent for longer, and
// counts one crash. Consumers that have nothing and have been silent for their lease and
// a minute are removed. What Redis handed out in an answer that was lost with its
// connection is found again by the worker itself, and counts as nothing, unless the
// connection was away for longer than the lease.
//
// A stream or group that vanished (FLUSHALL, DEL, XGROUP DESTROY, a failover to an empty
// replica) is made anew by the next worker that reads, from the beginning of what is
// there, and reported (GroupRecreated). Jobs that were settled are not there any more
// and do not run again. Jobs that were running are: they are delivered again at once, as
// if for the first time, so that neither this start nor earlier crashes since their last
// retry are counted, and what their older runs say is refused. In the same worker the
// second delivery waits for the first run; another worker runs it beside.
//
// # Backup and restore
//
// Back up as Redis' documentation says: the snapshot (dump.rdb), or the folder of the
// append-only file while rewrites are off. To restore, stop the workers, put the files in
// place, start Redis, start the workers. A restored server knows nothing of what happened
// since: jobs that waited, were held or ran then run again, those that ran count a crash
// when their leases have ended, jobs published since are gone, dead letters replayed or
// discarded since are there again, and claims are as they were if their time has not
// passed. Handlers with an idempotency key (the job's id) are as safe as with any
// redelivery.
//
// # Connections
//
// A provider has a client of its own, made from the user's settings, and each worker a
// connection for reading beside it (with TagQueue and several queues, two for each). The
// client speaks RESP2, sends nothing a second time by itself (what became of a command
// whose answer was lost is not known, and its caller is told so), gives up what is not
// answered within Config.Timeout, and then connects anew. Every wait for a broken server
// is bounded; workers go on when it is back. go-redis writes what it thinks of lost
// connections to standard error; redis.SetLogger changes that for the whole program.
//
// A user of Redis' access control needs +@read +@write +@scripting +@connection
// +@blocking +info +time and the keys of the namespace (~{backstage*). Without +info the
// version and the settings are not looked at.
//
// # Clusters
//
// With one tag for the namespace, which is the default, one node does all of its work,
// and everything is one step. Several namespaces spread over the nodes. With TagQueue
// each queue has its own slot: next jobs in other queues are stored before the job ends,
// so that a crash in between runs the step again and its next jobs twice, under one id;
// claims are pending until their jobs are stored, like lent ones; and a worker that waits
// for many queues looks into each that gets something, so that many idle workers on one
// queue all look. While a slot moves to another node, calls are refused or wait, and go
// on when it is there.
//
// # Memory
//
// A waiting job takes its record and some 20 bytes, a running one 90 more, a held one
// 300, a dead letter 200. A record is the payload and about 110 bytes. What ended leaves
// nothing: neither keys nor consumers grow with the work done.
package redisstreams
