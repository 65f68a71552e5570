// Package kafka is a provider on Apache Kafka, over the client segmentio/kafka-go: jobs
// are records in a topic per queue, and workers are members of one consumer group. The
// tests run with Kafka 4.3.
//
//	k, err := kafka.Open(ctx, kafka.Config{Brokers: []string{"kafka:9092"}})
//	r, err := redisstreams.Open(ctx, redisstreams.Config{})
//	k.Delays, k.Claims = r.Lend("kafka-shop")
//
// Kafka keeps nothing for later and holds no keys, so a worker needs lent Delays, and
// tasks with dedupe need lent Claims. The file of package embedded lends them too, where
// all workers are on one host.
//
// # What Kafka promises, and what is added
//
// A job that was published is on the logs of all in-sync replicas (acks=all), at least
// two with the usual settings. Kafka itself acknowledges records in order, one offset a
// partition, and knows no attempts, delays and dead letters. This package adds:
//
//   - Jobs are settled in any order. What is settled ahead of the offset, crashes,
//     failures and a mark up to which jobs may have been started ride in the commit's
//     metadata. A settlement that returned nil is on record at the group's coordinator.
//   - Commits carry generation and member, so that the coordinator refuses those of a
//     worker whose partitions others have.
//   - A rebalance is no crash: what still runs is put on record as running before its
//     partition goes.
//   - Jobs with an ordering key are records with that key. They are in one partition, run
//     one at a time, in order, and are retried in their place while later ones of the key
//     wait.
//
// There is no transaction that joins what a handler does, the copy of a retry (or a next
// job, or a dead letter) and the commit. The copy is stored first and then the source is
// settled; a crash between them leaves both, under one id. So handlers are repeated, and
// the job's id is what they recognise it by.
//
// # Publishing
//
// Whatever waits for a partition goes in one request, and while it is under way the next
// gathers; nothing waits for company. A request that was answered with an error is not
// stored, and is sent again until its context ends: there is no leader, it has moved, too
// few replicas are there, the topic is new. Where the connection ends before the answer,
// or the brokers do not confirm in time, the outcome is unknown, and the same id may be
// tried again: the client has no idempotent producer, which would tell.
//
// A job without a key goes to the partition whose turn it is, and leaves out those that
// fail. One with a key goes to the partition that is the 32-bit FNV-1a hash of the key
// modulo the number of partitions, and waits for it.
//
// # Partitions
//
// A partition belongs to one worker at a time, which runs as many of its jobs as it has
// slots. So a queue has at most as many workers as partitions; those beyond wait idly
// for one of the others to end. Take the most workers that the queue will ever have, and
// a few more, so that they share evenly. Each partition costs a long poll in its worker
// and room on the brokers, not speed.
//
// The client asks for all topics of the cluster every few seconds, to know who leads them.
//
// Partitions that others add are used after some seconds, with an event of kind Degraded:
// keys then have other partitions, and order is not kept between jobs of a key that were
// stored before and after. This package adds none.
//
// # Death of a worker
//
// A worker's session with the coordinator is its lease: when that has ended without a
// heartbeat, its partitions go to others. Brokers allow sessions from 6 seconds on
// (group.min.session.timeout.ms) and up to 30 minutes (group.max.session.timeout.ms). A
// shorter lease than 6 seconds has a session of at most 3 seconds more than it, so that
// the shortest is 3 seconds. Others hear of a dead worker with their next heartbeat, half
// a second later at most, and join anew in a moment: its jobs run again within the lease
// and 5 seconds.
//
// The mark says which jobs may have been started, so a crash may count for some that were
// only about to be. From its first crash on, each start of a job is put on record by
// itself: a job that ends its process is counted exactly, and its neighbours have one
// crash at most that is not theirs. A death in the middle of a rebalance may not be seen,
// because what runs is handed over as running: seven times of eight it is not counted. A
// membership that ends because the coordinator died,
// and whose partitions others get, looks like a death: what ran then counts one.
//
// # Retention
//
// Topics of jobs are made to keep all: what is settled is deleted by the workers, from
// time to time. A topic that exists and may lose jobs (a retention.ms shorter than the
// longest max age and a day, a retention.bytes, a cleanup.policy of compact) is refused
// by name when a worker starts, and so is one of dead letters that may lose some. If the
// log begins behind what was settled all the same, an event of kind RetentionOvertaken
// says how many are gone.
//
// A user who may not delete records gets an event; then settled jobs stay in the topic
// until somebody sets a retention.ms longer than the longest max age and a day.
//
// The group's offsets expire when it had no member for offsets.retention.minutes, 7 days
// by default. Workers then begin where the log does, and what was settled since records
// were last deleted runs again.
//
// # What is in the cluster
//
// With the prefix backstage:
//
//	topic backstage.q.QUEUE     a queue's jobs: Config.Partitions, cleanup.policy=delete
//	topic backstage.dead.QUEUE  its dead letters, made with the first one: 1 partition,
//	                            cleanup.policy=compact,delete
//	group backstage             the workers, with an offset for each partition
//
// Both have retention.ms=-1, retention.bytes=-1, message.timestamp.type=LogAppendTime,
// min.insync.replicas of one less than Config.Replication, and a max.message.bytes of
// Config.MaxRecord and 64 or 128 KiB. With Config.Passive they have to be made so. In
// QUEUE every byte but letters, digits, hyphens and dots is "_" and two hexadecimal
// digits, and so is a dot before two such digits: Kafka refuses names that differ only in
// dots for underscores.
//
// The value of a record is what provider.Marshal makes, its key the ordering key. Bytes
// that are none are moved to the dead letters as they are, with an event.
//
// Permissions, for what begins with the prefix: on topics CREATE, DESCRIBE,
// DESCRIBE_CONFIGS, READ, WRITE and DELETE (to delete records), on the group READ. The
// cluster's default of unclean.leader.election.enable, false, is relied on: with true, a
// broker that was not in sync may lead, and jobs that were stored are gone.
//
// # Dead letters
//
// A letter has a key of its own. When it is replayed or discarded, a record with this key
// and no value says that it is gone; everything before the first letter that is left is
// then deleted, and of the rest the broker removes what is gone when it compacts the
// topic. A replay that is cut off between storing the copy and marking the letter leaves
// both, with one id; two that replay one letter at once in two processes may store two
// copies.
//
// Kafka cannot look for a record: List, Get, Replay and Discard read all of a queue's
// topic, and List also reads the letters of its page once more. 20,000 letters of 600
// bytes took a second on a machine with two busy cores. Stats reads what is new since it
// last looked, and remembers about 100 bytes of each letter.
//
// # Numbers
//
// Depth is what the group's commits do not have as settled, whether there are workers or
// not. What runs in this process, or waits in its place for its time, is not in it; what
// other processes run is on no record, so it is in Depth, and InFlight is then unknown.
//
// # Backup and restore
//
// A copy of a topic without the group's offsets has jobs that were settled; workers run
// them again. Copies of both that are not of one moment lose nothing if the offsets are
// the older ones. The topic of dead letters can be copied alone.
package kafka
