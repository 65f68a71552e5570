package kafka

import (
	"fmt"
	"strings"
)

// names are those of all topics of a prefix.
type names struct{ prefix string }

// longestName is the most bytes of a topic's name.
const longestName = 249

// longestPrefix leaves room for the queue.
const longestPrefix = 100

// The parts of a topic's name between prefix and queue.
const (
	partJobs = "q"
	partDead = "dead"
)

// jobs is the topic of a queue's jobs, dead that of its dead letters.
func (n names) jobs(queue string) string { return n.topic(partJobs, queue) }
func (n names) dead(queue string) string { return n.topic(partDead, queue) }

func (n names) topic(part, queue string) string {
	return n.prefix + "." + part + "." + escape(queue)
}

// queue is the queue to which a topic belongs, as its jobs or its dead letters.
func (n names) queue(part, topic string) (string, bool) {
	escaped, ok := strings.CutPrefix(topic, n.prefix+"."+part+".")
	if !ok {
		return "", false
	}
	queue, ok := unescape(escaped)
	return queue, ok && queue != "" && escape(queue) == escaped
}

// check says that the names of a queue are too long for Kafka.
func (n names) check(queue string) error {
	if topic := n.dead(queue); len(topic) > longestName {
		return fmt.Errorf("the name of queue %.40q is too long: its topic %s… would have %d bytes, and Kafka allows %d", queue, topic[:40], len(topic), longestName)
	}
	return nil
}

const hexDigits = "0123456789ABCDEF"

// escape makes a queue's name a part of a topic's. Letters, digits, hyphens and dots
// stay; any other byte is "_" and its two hexadecimal digits, and so is a dot before
// two such digits: Kafka refuses a topic whose name differs from another's only in dots
// for underscores.
func escape(queue string) string {
	var b strings.Builder
	for i := range len(queue) {
		c := queue[i]
		plain := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.'
		if plain && !(c == '.' && isHex(queue[i+1:])) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('_')
		b.WriteByte(hexDigits[c>>4])
		b.WriteByte(hexDigits[c&15])
	}
	return b.String()
}

func unescape(escaped string) (queue string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(escaped); i++ {
		if escaped[i] != '_' {
			b.WriteByte(escaped[i])
			continue
		}
		if !isHex(escaped[i+1:]) {
			return "", false
		}
		b.WriteByte(byte(strings.IndexByte(hexDigits, escaped[i+1])<<4 | strings.IndexByte(hexDigits, escaped[i+2])))
		i += 2
	}
	return b.String(), true
}

// isHex reports whether a text begins with two digits as escape writes them.
func isHex(s string) bool {
	return len(s) >= 2 && strings.IndexByte(hexDigits, s[0]) >= 0 && strings.IndexByte(hexDigits, s[1]) >= 0
}

// checkPrefix refuses a prefix with which two queues could have one topic, or which
// Kafka does not allow.
func checkPrefix(prefix string) error {
	if len(prefix) > longestPrefix {
		return setupError(fmt.Sprintf("the prefix has %d bytes", len(prefix)), fmt.Sprintf("choose one of at most %d, because names in Kafka have at most %d", longestPrefix, longestName))
	}
	for _, c := range []byte(prefix) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_') {
			return setupError(fmt.Sprintf("the prefix %q has characters that Kafka does not allow", prefix), "use letters, digits, dots, underscores and hyphens")
		}
	}
	for _, part := range strings.FieldsFunc(prefix, func(r rune) bool { return r == '.' || r == '_' }) {
		if part == partJobs || part == partDead {
			return setupError(fmt.Sprintf("the prefix %q has the part %q, which topics have between prefix and queue", prefix, part), "choose another prefix")
		}
	}
	return nil
}
