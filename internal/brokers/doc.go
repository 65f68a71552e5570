// Package brokers starts the real servers that tests need, on loopback ports and in
// folders of their own, and takes them down again: its own, and no others.
//
// A test asks for what it needs. [SharedRedis], [SharedRabbitMQ] and [SharedKafka] are
// servers that everybody in a run uses, each in a namespace or under a prefix of its own.
// [RequireRedis], [RequireRedisCluster], [RequireRedisSentinel], [RequireRabbitMQ],
// [RequireRabbitMQCluster] and [RequireKafka] give a test servers that it may kill, stop
// and start again.
// Without the environment that the tool in folder run sets, such tests are skipped,
// with a sentence that says how to get them; with it, a server that cannot be had
// fails them. [Proxy] stands between a client and a server, and spoils connections.
//
// # Where the programs come from
//
// A program that is installed and new enough is used as it is. Else the servers run in
// containers, where a Docker daemon answers and the docker command has compose. Else the
// tool, as root on Debian or Ubuntu, installs the packages, and says so; a test does not.
// Else there is an error that says what to do. Nothing asks for a password.
//
// Kafka is in no package: the tool has Maven download a pinned release into the user's
// folder for caches, where later runs find it. Java and Maven are the packages.
//
// The ways through Docker and apt-get are tested with stubs in the place of these
// commands, and not with a daemon and an archive of packages.
//
// # Who takes servers down
//
// Whoever starts servers owns them, and takes them down when it is done: a test at its
// end, the tool when its command has ended, however that ended. A small shell process,
// in a session of its own, watches over each site; it does the same as soon as its owner
// has died of whatever, SIGKILL included. If that process is killed too, or cannot be
// had (Windows), the next run of the tool finds the folder, sees that the owner is gone,
// and kills what is left in it: only processes that have the number and the time of
// birth on record. On Windows nobody can tell, and nothing is killed.
//
// Two moments are not covered: an owner that is killed after a server was started and
// before its number is on record, which are some microseconds; and one that is killed
// while Docker still fetches an image for it.
//
// Only what `make brokers` started stays up, until `make brokers-down`.
//
// # Folders and ports
//
// A site (a server, or some that belong together) has a folder below
// backstage-brokers-UID in the folder for temporary files, and ten ports from a block
// of its own between 10000 and 19999, and the same ten plus 10000. Both are below the
// range from which Linux, macOS and Windows take ports for outgoing connections, and
// the name of the folder is the claim of the block, so that runs that go on at the same
// time do not meet.
//
// # Adding a broker
//
// A broker is a [recipe]: what its program is called, how old it may be, which packages
// and which image have it, and how the shared server is started. Its servers are
// [spec]s: the files they need, their command line, and how to see that they are ready.
// Whether they run as processes or in containers is not their business.
package brokers
