package redisstreams

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	backstage "github.com/backstage-go/backstage/runtime"
)

// monitor counts the commands that are sent to a server, not those inside scripts.
type monitor struct {
	conn net.Conn

	mu   sync.Mutex
	sent map[string]int
}

func watchServer(t *testing.T, addr string) *monitor {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	m := &monitor{conn: conn, sent: make(map[string]int)}
	if _, err := fmt.Fprint(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 64<<20)
	if !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("monitor: %q, %v", lines.Text(), lines.Err())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
			m.count(lines.Text())
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-ended
	})
	return m
}

// count reads a line like `+1.2 [0 127.0.0.1:3] "XADD" "key"`.
func (m *monitor) count(line string) {
	_, rest, found := strings.Cut(line, "] \"")
	if !found || strings.Contains(line, "[0 lua]") {
		return
	}
	name, _, _ := strings.Cut(rest, "\"")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent[strings.ToLower(name)]++
}

// since returns what was sent since the last time.
func (m *monitor) since() (total int, by string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var words []string
	for _, name := range slices.Sorted(maps.Keys(m.sent)) {
		total += m.sent[name]
		words = append(words, fmt.Sprintf("%s %d", name, m.sent[name]))
	}
	clear(m.sent)
	return total, strings.Join(words, ", ")
}

// TestAnIdleWorkerIsQuiet counts what a worker sends that has nothing to do: at most
// three commands a second for each slot, however many lanes there are.
func TestAnIdleWorkerIsQuiet(t *testing.T) {
	for name, c := range map[string]struct {
		tags  Tags
		lanes int
		slots int // at work
		hash  int // slots of keys
	}{
		"one lane":               {TagNamespace, 1, 10, 1},
		"many lanes":             {TagNamespace, 40, 100, 1},
		"fewer slots than lanes": {TagNamespace, 40, 10, 1},
		"a slot for each queue":  {TagQueue, 4, 10, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := brokers.RequireRedis(t, brokers.RedisOptions{})
			s := openStore(t, Config{URL: "redis://" + server.Addr(), Tags: c.tags})
			th := stage(t, s)
			th.queues = nil
			for i := range c.lanes {
				th.queues = append(th.queues, backstage.Queue{Name: fmt.Sprintf("q%d", i)})
			}
			th.queues[0].Name = "q"
			th.starts(backstage.WorkerConfig{Concurrency: c.slots, Lease: 30 * time.Second})
			ids := th.enqueue(5)
			until(t, "all jobs are done", func() bool { return th.done(ids) })
			m := watchServer(t, server.Addr())
			sleep(t.Context(), time.Second)
			m.since()
			const seconds = 6
			sleep(t.Context(), seconds*time.Second)
			n, by := m.since()
			t.Logf("%.1f commands a second: %s", float64(n)/seconds, by)
			if n > 3*seconds*c.hash {
				t.Errorf("%d commands in %d s; want at most 3 a second for each of %d slots", n, seconds, c.hash)
			}
			if n == 0 {
				t.Errorf("nothing was seen")
			}
		})
	}
}

// TestFewCommandsAJob counts what producers and a worker send under load.
func TestFewCommandsAJob(t *testing.T) {
	t.Parallel()
	server := brokers.RequireRedis(t, brokers.RedisOptions{})
	s := openStore(t, Config{URL: "redis://" + server.Addr()})
	th := stage(t, s)
	th.starts(backstage.WorkerConfig{Concurrency: 100, Lease: 30 * time.Second})
	m := watchServer(t, server.Addr())
	m.since()
	const producers, each = 64, 50
	var mu sync.Mutex
	var ids []string
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			for range each {
				id := newID()
				th.insist(id)
				mu.Lock()
				ids = append(ids, id)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	until(t, "all jobs are done", func() bool { return th.done(ids) })
	n, by := m.since()
	perJob := float64(n) / float64(producers*each)
	t.Logf("%.2f commands a job: %s", perJob, by)
	if perJob > 2 {
		t.Errorf("%.2f commands a job; want at most 2", perJob)
	}
}

// TestOneCommandAnEnqueue is what a lone producer sends.
func TestOneCommandAnEnqueue(t *testing.T) {
	t.Parallel()
	server := brokers.RequireRedis(t, brokers.RedisOptions{})
	s := openStore(t, Config{URL: "redis://" + server.Addr()})
	s.stores(t, job("first"))
	s.stores(t, job("first with a claim", untilDone("first")))
	s.stores(t, job("first held", in(time.Hour)))
	m := watchServer(t, server.Addr())
	m.since()
	const n = 30
	for i := range n / 3 {
		s.stores(t, job(fmt.Sprint(i)))
		s.stores(t, job(fmt.Sprint(i), untilDone(fmt.Sprint(i))))
		s.stores(t, job(fmt.Sprint(i), in(time.Hour)))
	}
	s.stores(t, job("last"))
	until(t, "the last is seen", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.sent["evalsha"]+m.sent["xadd"] > n
	})
	if total, by := m.since(); total != n+1 {
		t.Errorf("%d commands for %d jobs: %s", total, n+1, by)
	}
}
