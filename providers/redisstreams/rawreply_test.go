package redisstreams

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/runtime/provider"
)

// TestEntriesOfAnAnswer reads what Redis answers to XREADGROUP.
func TestEntriesOfAnAnswer(t *testing.T) {
	t.Parallel()
	const stream, ours = "*2\r\n$1\r\nq\r\n", "*2\r\n$3\r\n1-1\r\n*2\r\n$3\r\njob\r\n$4\r\na\r\nb\r\n"
	for name, c := range map[string]struct {
		came string
		want string
		bad  bool
	}{
		"nothing":            {"*-1\r\n", "[]", false},
		"an entry":           {"*1\r\n" + stream + "*1\r\n" + ours, `[1-1 true "a\r\nb"]`, false},
		"two entries":        {"*1\r\n" + stream + "*2\r\n" + ours + ours, `[1-1 true "a\r\nb" 1-1 true "a\r\nb"]`, false},
		"a foreign entry":    {"*1\r\n" + stream + "*1\r\n*2\r\n$3\r\n1-2\r\n*2\r\n$1\r\nx\r\n$1\r\ny\r\n", `[1-2 false "\"x\": \"y\"\n"]`, false},
		"a job among others": {"*1\r\n" + stream + "*1\r\n*2\r\n$3\r\n1-2\r\n*4\r\n$1\r\nx\r\n$1\r\ny\r\n$3\r\njob\r\n$1\r\nz\r\n", `[1-2 true "z"]`, false},
		"a deleted entry":    {"*1\r\n" + stream + "*1\r\n*2\r\n$3\r\n1-2\r\n*-1\r\n", `[1-2 false ""]`, false},
		"another shape":      {"%1\r\n$1\r\nq\r\n*0\r\n", "[]", true},
		"a number":           {":1\r\n", "[]", true},
		"cut off":            {"*1\r\n" + stream + "*2\r\n" + ours + "*2\r\n$3\r\n1-2\r\n*2\r\n$3\r\njob\r\n$400\r\na", `[1-1 true "a\r\nb"]`, true},
		"no length":          {"*1\r\n*2\r\n$x\r\nq\r\n", "[]", true},
		"empty":              {"", "[]", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			came, err := rawReplyOf([]byte(c.came))
			if err != nil {
				t.Fatal(err)
			}
			got := []any{}
			for range came.list() {
				came.list()
				came.text()
				for range came.list() {
					if id, entry := came.entry(); !came.bad {
						got = append(got, id, entry.ours, fmt.Sprintf("%q", entry.bytes))
					}
				}
			}
			if fmt.Sprint(got) != c.want || came.bad != c.bad {
				t.Errorf("%v, bad %v; want %s, bad %v", got, came.bad, c.want, c.bad)
			}
		})
	}
}

// TestAnAnswerThatIsAnError is one of Redis' errors, to all who look at them.
func TestAnAnswerThatIsAnError(t *testing.T) {
	t.Parallel()
	_, err := rawReplyOf([]byte("-READONLY You can't write against a read only replica.\r\n"))
	var said redis.Error
	if r, known := refusalOf(err); !errors.As(err, &said) || !known || !r.moved {
		t.Errorf("%v; want an error of a server that is a replica", err)
	}
}

// TestJobsOutliveTheirAnswer because the next one comes to the same place in memory.
func TestJobsOutliveTheirAnswer(t *testing.T) {
	t.Parallel()
	s := shared(t, Config{})
	sub := s.worker(t, time.Minute, "q")
	sub.gets(t, 20*time.Millisecond, 1) // from now on it is handed out what comes while it waits
	var runs []provider.Delivery
	for _, id := range []string{"first", "other", "third"} {
		s.stores(t, job(id))
		runs = append(runs, sub.takes(t, 1)...)
	}
	for i, id := range []string{"first", "other", "third"} {
		if got := runs[i].Job(); got.ID != id || got.Task != "Task" || got.Queue != "q" || string(got.Payload) != "payload of "+id {
			t.Errorf("run %d is %+v; want job %s", i, got, id)
		}
	}
	ack(t, runs...)
}
