package rabbitmq

import (
	"fmt"
	"time"
)

// heartbeat is how often, in seconds, the broker and a client make sure that the
// other one lives. The broker gives a silent client up after two to three of them.
// 0 is for connections on which no lease depends.
type heartbeat int

// usualHeartbeat is that of such connections.
const usualHeartbeat = 10

// heartbeatOf derives it from a lease: a third, so that the jobs of a dead worker are
// back within the lease.
func heartbeatOf(lease time.Duration) (heartbeat, error) {
	const most = 1<<16 - 1
	seconds := lease / 3 / time.Second
	if seconds < 1 {
		return 0, setupError(fmt.Sprintf("the lease is %v", lease), "make it 3s or longer: it is three heartbeats, which AMQP counts in seconds")
	}
	return heartbeat(min(seconds, most)), nil
}

func (h heartbeat) interval() time.Duration {
	if h == 0 {
		h = usualHeartbeat
	}
	return time.Duration(h) * time.Second
}
