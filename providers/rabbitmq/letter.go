package rabbitmq

import (
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// The headers of a dead letter.
const (
	headerDied   = "backstage-died"   // when, in nanoseconds since 1970
	headerLetter = "backstage-letter" // what tells it from others in its queue
	headerRaw    = "backstage-raw"    // why it was no record
)

// letterMessage is a dead letter as it is stored.
func letterMessage(id string, job *provider.Job, raw []byte, f provider.Failure) (amqp.Publishing, error) {
	var m amqp.Publishing
	if job != nil {
		body, err := provider.Marshal(job)
		if err != nil {
			return m, err
		}
		m = message(job.ID, body)
	} else {
		m = message("", raw)
		m.ContentType = ""
	}
	m.Headers = amqp.Table{headerLetter: id, headerDied: now().UnixNano()}
	if job == nil {
		m.Headers[headerRaw] = f.Message
	}
	return m, nil
}

func now() time.Time { return time.Unix(0, time.Now().UnixNano()) }

// An address is the letter's id and its queue.
func addressOf(id, queue string) string { return id + "@" + queue }

func parseAddress(address string) (id, queue string, ok bool) {
	id, queue, ok = strings.Cut(address, "@")
	return id, queue, ok && id != "" && queue != ""
}

// readLetter makes a dead letter of a message.
func readLetter(queue string, m *amqp.Delivery) provider.DeadLetter {
	l := provider.DeadLetter{
		Address: addressOf(text(m.Headers[headerLetter]), queue),
		Queue:   queue,
		At:      time.Unix(0, number(m.Headers[headerDied])),
	}
	why, raw := m.Headers[headerRaw]
	job, err := provider.Unmarshal(m.Body)
	switch {
	case raw:
		l.Failure = provider.Failure{At: l.At, Class: provider.ClassNoRecord, Message: text(why)}
	case err != nil:
		l.Failure = provider.Failure{At: l.At, Class: provider.ClassNoRecord, Message: err.Error()}
	default:
		l.Job = job
		if n := len(job.History); n > 0 {
			l.Failure = job.History[n-1]
		}
		return l
	}
	l.Raw = append([]byte{}, m.Body...)
	return l
}

// notFound says which letter is not there.
func notFound(address string) error {
	return fmt.Errorf("dead letter %q: %w", address, provider.ErrNotFound)
}
