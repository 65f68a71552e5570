package rabbitmq

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// names are those of all that a prefix has in the broker.
type names struct{ prefix string }

// longestName is the most bytes of a name or a routing key in AMQP.
const longestName = 255

func (n names) jobs(queue string) string { return n.prefix + ".jobs." + queue }
func (n names) dead(queue string) string { return n.prefix + ".dead." + queue }

// rescue is where the broker puts jobs of which it thinks that they came back too
// often, or lived too long.
func (n names) rescue() string { return n.prefix + ".rescue" }

// registry is the queue with the names of all queues, which AMQP cannot list.
func (n names) registry() string { return n.prefix + ".queues" }

// lock is the queue whose owner may look through another one.
func (n names) lock(of string) string {
	return n.prefix + ".lock." + strings.TrimPrefix(of, n.prefix+".")
}

// probe is a queue on which a return is tried.
func (n names) probe(unique string) string { return n.prefix + ".probe." + unique }

// step is the exchange of one level of the ladder, rung one of its queues.
func (n names) step(level int) string { return n.prefix + ".delay." + strconv.Itoa(level) }
func (n names) rung(level, digit int) string {
	return n.step(level) + "." + strconv.Itoa(digit)
}

// due is the exchange that leads from the ladder to the queues.
func (n names) due() string { return n.prefix + ".due" }

// word makes a queue's name one word of a routing key.
func word(queue string) string { return strings.ReplaceAll(url.QueryEscape(queue), ".", "%2E") }

// check says that the names of a queue are too long for the broker.
func (n names) check(queue string) error {
	for _, name := range []string{n.lock(n.dead(queue)), keyOf(nil, queue)} {
		if len(name) > longestName {
			return fmt.Errorf("the name of queue %q is too long: RabbitMQ allows %d bytes, of which Backstage uses some for its own", queue, longestName)
		}
	}
	return nil
}
