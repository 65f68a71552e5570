package bare

import (
	"runtime"

	amqp "github.com/rabbitmq/amqp091-go"
)

// acknowledge sends acknowledgements, those that wait together, until done is closed.
func acknowledge(ch *amqp.Channel, done <-chan uint64) (err error) {
	a := acks{above: make(map[uint64]bool)}
	for tag := range done {
		runtime.Gosched() // others are about to end
		batch := []uint64{tag}
		for more := true; more; {
			select {
			case tag, open := <-done:
				if more = open; open {
					batch = append(batch, tag)
				}
			default:
				more = false
			}
		}
		if err == nil {
			err = a.send(ch, batch)
		}
	}
	return err
}

// acks are the tags that were acknowledged.
type acks struct {
	upTo  uint64 // all up to this one
	above map[uint64]bool
}

// send acknowledges all up to a tag at once, if none before it is missing, and the
// others one by one.
func (a *acks) send(ch *amqp.Channel, batch []uint64) error {
	for _, tag := range batch {
		a.above[tag] = true
	}
	first := a.upTo + 1
	for a.above[a.upTo+1] {
		a.upTo++
		delete(a.above, a.upTo)
	}
	highest := uint64(0)
	for _, tag := range batch {
		if tag <= a.upTo {
			highest = max(highest, tag)
		} else if err := ch.Ack(tag, false); err != nil {
			return err
		}
	}
	if highest == 0 {
		return nil
	}
	return ch.Ack(highest, highest > first)
}
