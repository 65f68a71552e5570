package kafka

import (
	"errors"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/runtime/provider"
)

func TestTheTopicsOfQueues(t *testing.T) {
	t.Parallel()
	n := names{"backstage"}
	for queue, want := range map[string]string{
		"orders":     "backstage.q.orders",
		"mail.v1":    "backstage.q.mail.v1",
		"order-mail": "backstage.q.order-mail",
		"order_mail": "backstage.q.order_5Fmail",
		"a/b:c":      "backstage.q.a_2Fb_3Ac",
		"x.5F":       "backstage.q.x_2E5F",
		"x.5f":       "backstage.q.x.5f",
	} {
		topic := n.jobs(queue)
		if topic != want {
			t.Errorf("topic of %q is %q, want %q", queue, topic, want)
		}
		if back, ok := n.queue(partJobs, topic); !ok || back != queue {
			t.Errorf("queue of %q is %q, %t; want %q", topic, back, ok, queue)
		}
	}
	for _, topic := range []string{"backstage.q.", "backstage.q.a_", "backstage.q.a_6", "backstage.q.a_61", "backstage.dead.a", "other.q.a", "backstage.q.a_2e"} {
		if queue, ok := n.queue(partJobs, topic); ok {
			t.Errorf("topic %q is taken for that of queue %q", topic, queue)
		}
	}
}

// FuzzTopicsNeverMeet also holds for names that differ in dots for underscores, because
// Kafka refuses the second of such two topics.
func FuzzTopicsNeverMeet(f *testing.F) {
	f.Add("a_b", "a.b")
	f.Add("x.5F", "x_")
	f.Add("..5F", "._")
	f.Add("a.", "a_2E")
	f.Fuzz(func(t *testing.T, a, b string) {
		same := strings.ReplaceAll(escape(a), ".", "_") == strings.ReplaceAll(escape(b), ".", "_")
		if same != (a == b) {
			t.Errorf("%q and %q have the topics %q and %q", a, b, escape(a), escape(b))
		}
		for _, queue := range []string{a, b} {
			if back, ok := unescape(escape(queue)); !ok || back != queue {
				t.Errorf("%q is %q, and that is %q, %t", queue, escape(queue), back, ok)
			}
			if strings.Trim(escape(queue), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
				t.Errorf("%q is %q, which Kafka does not allow", queue, escape(queue))
			}
		}
	})
}

func TestNamesThatKafkaDoesNotAllowAreRefused(t *testing.T) {
	t.Parallel()
	var setup *provider.SetupError
	for _, prefix := range []string{"a b", "ä", "team.q", "q", "a_dead.b", strings.Repeat("a", 101)} {
		if err := checkPrefix(prefix); !errors.As(err, &setup) {
			t.Errorf("prefix %q: %v, want a SetupError", prefix, err)
		}
	}
	for _, prefix := range []string{"backstage", "team.shop_1-x", "quick", strings.Repeat("a", 100)} {
		if err := checkPrefix(prefix); err != nil {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
	n := names{"backstage"}
	if err := n.check(strings.Repeat("a", 200)); err != nil {
		t.Errorf("a queue's name of 200 letters: %v", err)
	}
	if err := n.check(strings.Repeat("_", 100)); err == nil {
		t.Error("a queue whose topic would have more than 249 bytes is no error")
	}
}
