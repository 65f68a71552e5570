// Package rabbitmq is a provider on RabbitMQ, 3.10 or newer, over AMQP 0.9.1: jobs are
// persistent messages in quorum queues, which survive restarts, and the loss of a
// minority of a cluster's nodes.
//
//	p, err := rabbitmq.Open(ctx, rabbitmq.Config{URL: "amqp://shop:secret@rabbit/shop"})
//
// # What it promises
//
// A job that was published is confirmed by the broker, and so is every copy that a
// settlement stores (a next job, a retry, a dead letter, a job that is given back):
// only then its run ends. The end itself is sent and not confirmed, because AMQP 0.9.1
// has no answer to an acknowledgement: a crash of the broker may bring back jobs that
// were settled in its last moment, and so may one of a worker, whose last words a busy
// broker may not have read, or which came between a copy and the end. They run again
// under the same id, and so do their next jobs.
//
// A delivery belongs to the channel that it came on. When that has ended, whatever the
// reason, its settlement is refused and nothing is sent. Connections, channels and
// consumers are made again by this package, not by the client's own recovery, which
// could let a settlement from before an outage acknowledge another job after it.
//
// A worker's connection has a heartbeat of a third of its lease: the broker gives the
// jobs of a worker that is dead, stopped or cut off to others within the lease. The
// shortest lease is 3 seconds.
//
// # Crashes
//
// The broker counts how often a job came back, not how often it was started: a worker
// that dies also returns jobs that had only been sent to it. So this count is an upper
// bound, which makes a job a suspect and never a dead letter; starts of suspects are
// put on record first. A worker that stops in good order gives back what it was sent and
// has not started, at the end of the queue, and nobody counts that; what is sent to it
// while it waits for its last handlers waits with it.
//
// The library decides when a job is given up, not the broker. All queues have a delivery
// limit of a million on every version (-1 means 0 before RabbitMQ 4), and before a
// worker starts it tries on a queue of its own that a returned job comes back. Where a
// policy sets a smaller limit, the broker puts jobs into a rescue queue, from which any
// worker brings them back.
//
// # Delays
//
// The broker itself keeps jobs until they are due, in a ladder of queues whose messages
// live for a fixed time: 250 ms to 48 days, in steps of 250 ms. No plugin is needed. The
// delayed-message plugin is not used: it is no longer maintained, was never replicated,
// and does not exist for RabbitMQ 4.3. A job in the ladder cannot be cancelled, found or
// counted. After a crash of the broker the ladder may stand still for as long as
// dead_letter_worker_publisher_confirm_timeout, 180 seconds by default; in
// advanced.config,
//
//	[{rabbit, [{dead_letter_worker_publisher_confirm_timeout, 2000}]}].
//
// makes it two. On a machine with two cores, single jobs of 1 to 90 seconds came at most
// 0.2 seconds late (with delays that a Redis had lent 0.05), and the last of 2,000 with
// mixed delays of up to 5 seconds 0.8 seconds (0.9). Of 20,000 at once half came more than
// 1.2 seconds late and the last 4.3 (0.6 and 1.5); when the machine was very busy, half
// came more than 11 seconds late and one in a hundred more than 21 (4 and 6). In
// production, lent delays are recommended:
//
//	r, err := redisstreams.Open(ctx, redisstreams.Config{})
//	p.Delays, p.Claims = r.Lend("rabbitmq-shop")
//
// Claims are always lent: tasks with dedupe need them. There is no order by key.
//
// # What is in the broker
//
// With the prefix backstage, all durable:
//
//	queue backstage.jobs.QUEUE      a queue's jobs
//	queue backstage.dead.QUEUE      its dead letters, made with the first one
//	queue backstage.rescue          jobs that a policy threw out
//	queue backstage.queues          the names of all queues, which AMQP cannot list
//	exchange backstage.delay.L      topic, for each level L of the ladder, 0 to 7
//	queue backstage.delay.L.D       its rungs, for each digit D, 1 to 7
//	exchange backstage.due          topic, from the ladder to the queues
//
// All queues have the arguments x-queue-type: quorum and x-overflow: reject-publish,
// and all but the rungs x-delivery-limit: 1000000. Queues of jobs also have
// x-dead-letter-exchange: "", x-dead-letter-routing-key: backstage.rescue and
// x-dead-letter-strategy: at-least-once. A rung has x-message-ttl: D × 8^L × 250,
// x-dead-letter-strategy: at-least-once and x-dead-letter-exchange: the exchange of the
// level below, or backstage.due; it is bound to the exchange of its level with nine
// words, all "*" but the digit at its place (level 7 first). With 0 at that place, the
// exchange is bound to the one below. backstage.due is bound to a queue's jobs with eight
// "*" and the queue's name, query-escaped, with %2E for a dot.
//
// For a short time there are also backstage.probe.X, on which a return is tried, and
// backstage.lock.X, whose owner looks through a queue. With Config.Passive nothing is
// declared, no return is tried, and only one at a time may look at dead letters and
// queues.
//
// Permissions: configure, write and read on what begins with the prefix, and write on
// amq.default.
//
// A queue that is new is used 1.5 seconds after it was declared, because a broker that
// crashes in a queue's first second may bring it back without a leader (seen with 3.10).
// So the first job of a queue, or with a delay of a new kind, takes that long to store.
//
// # Jobs that run for long
//
// The server takes back all jobs of a worker that has one for longer than its
// consumer_timeout, 30 minutes by default. A worker with a task that may take longer
// fails at start-up; raise consumer_timeout in rabbitmq.conf, and tell it to
// Config.ConsumerTimeout, because AMQP does not.
//
// # Alarms
//
// A broker that is short of memory or disk takes no jobs: Publish waits until its
// context ends, and says so; Health and an event do, too. Settlements that store nothing
// go on.
//
// # Dead letters
//
// AMQP can look at messages only by taking them. So List, Get, Replay and Discard take
// all letters of a queue and give back those that stay, one caller at a time; they take
// the longer the more there are, and lose none if they are cut off. A replay that is cut
// off between storing the copy and removing the letter leaves both, with one id.
//
// # Numbers
//
// How many jobs wait in a queue is exact. How many are in flight is known with
// Config.Management alone, up to five seconds late; without it it is unknown, and so is
// in any case how long the oldest job has been ready. Numbers of dead letters, and the age
// of the oldest, take a look through them as above.
//
// # Versions
//
// The same code and the same queues serve 3.10 to 4.3; the tests run with 3.10.8, and ran
// with 4.3.6. From 4.0 on, queues have a delivery limit of 20 where none is set: ours is
// set. In 4.3 only the death of a worker counts as a return, and a message that is given
// back does not; nothing here depends on the difference. A job's record is at most 15 MB,
// because 4.0 refuses messages above 16.
//
// # Clusters
//
// Config.Others names further nodes. Quorum queues have a replica on up to three nodes
// by default, and take and give jobs while a majority of them is there: when one of three
// died under load, work went on after 0.1 to 2 seconds. Without a majority Publish tries
// for up to ten seconds, or until its context ends, and says that its jobs are refused,
// or that it does not know.
//
// # Backup and restore
//
// There is no backup of messages but a copy of all data folders of a broker that is
// stopped. A broker that is started on such a copy knows nothing of what happened
// since: jobs that were waiting, held or running then run again, jobs published since
// are gone, and dead letters that were replayed or discarded since are there again.
// Exported definitions have the queues and exchanges, and no jobs; with these, workers
// start on empty queues.
package rabbitmq
