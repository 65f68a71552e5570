//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
	"github.com/google/go-cmp/cmp"
)

// broker is what the shop runs on.
type broker struct {
	url string
	// kill ends the server with SIGKILL, and restart starts it again. Nil where there
	// is none.
	kill    func() error
	restart func(context.Context) error
}

func embeddedBroker(t *testing.T) broker {
	return broker{url: "embedded:" + filepath.Join(t.TempDir(), "queue.db")}
}

func TestEveryAcceptedOrderIsDoneOnceWhateverIsKilled(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) broker{
		"embedded": embeddedBroker,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killAndCount(t, open(t))
		})
	}
}

const (
	// orders come at a rate at which they are still coming in when things are killed.
	testOrders = 500
	testRate   = 100
	// slots is how many handlers a worker runs at once, unsettled how many jobs it has
	// at most, those included that are being settled.
	slots     = 8
	unsettled = 2*slots + 16
)

func killAndCount(t *testing.T, b broker) {
	s := newStage(t, b)
	victim, second := s.worker("worker-1"), s.worker("worker-2")
	producer := s.start("producer", "produce", "-orders", strconv.Itoa(testOrders), "-rate", strconv.Itoa(testRate))

	s.until("a fifth of the orders is charged", func() bool { return s.numbers().charged >= testOrders/5 })
	held := s.freezeAtWork(victim)
	victim.signal(syscall.SIGKILL)
	third := s.worker("worker-3")
	most := unsettled

	if b.kill != nil {
		s.until("half of the orders are accepted", func() bool { return s.numbers().orders >= testOrders/2 })
		s.killBroker(producer)
		most += 2 * unsettled
	}
	if err := producer.wait(); err != nil {
		t.Fatalf("producer: %v", err)
	}
	s.until("all is done", func() bool { return s.numbers().done() })
	for _, worker := range []*process{second, third} {
		worker.signal(syscall.SIGTERM)
		if err := worker.wait(); err != nil {
			t.Errorf("%s does not end well: %v", worker.name, err)
		}
	}

	s.checkEffects()
	s.checkDeadLetters()
	for _, job := range held {
		if runs := s.count(`select count(*) from run where job_id=?`, job); runs < 2 {
			t.Errorf("job %s, which the killed worker ran, has %d runs, want a second one", job, runs)
		}
	}
	// A second run of a charge may make its next jobs a second time.
	most = 3 * (most + producer.unknown())
	if n := s.numbers(); n.restarted > most {
		t.Errorf("%d second runs, want at most %d", n.restarted, most)
	} else {
		t.Logf("%d second runs (at most %d), %d of them recognised; the killed worker ran %d charges", n.restarted, most, n.recognised, len(held))
	}
	out, err := shopCommand(t, "report", "-url", b.url, "-data", s.data)
	if err != nil {
		t.Errorf("report: %v\n%s", err, out)
	}
	wantLines(t, out, fmt.Sprintf(`(?m)^ +%d  orders accepted$`, testOrders), `(?m)^ +0  \+ not finished yet$`, `(?m)^ +0  dead letters of other jobs$`)
}

// stage is a shop, seen from outside.
type stage struct {
	t      *testing.T
	data   string
	broker broker
	shop   *shop
}

func newStage(t *testing.T, b broker) *stage {
	t.Helper()
	s := &stage{t: t, data: t.TempDir(), broker: b}
	var err error
	if s.shop, err = (&place{url: b.url, data: s.data}).open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.shop.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func (s *stage) worker(name string) *process {
	return s.start(name, "worker", "-name", name, "-lease", "2s", "-concurrency", strconv.Itoa(slots))
}

func (s *stage) numbers() numbers {
	s.t.Helper()
	n, err := s.shop.ledger.numbers(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *stage) count(query string, args ...any) (n int) {
	s.t.Helper()
	if err := s.shop.ledger.db.QueryRowContext(s.t.Context(), query, args...).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// strings returns the only column of what a query gives.
func (s *stage) strings(query string, args ...any) (all []string) {
	s.t.Helper()
	rows, err := s.shop.ledger.db.QueryContext(s.t.Context(), query, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// until waits until a condition holds.
func (s *stage) until(what string, holds func() bool) {
	s.t.Helper()
	deadline := time.After(3 * time.Minute)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline:
			s.t.Fatalf("waited in vain: %s; %+v", what, s.numbers())
		}
	}
}

// freezeAtWork stops a worker while it runs charges that have not happened yet, and
// returns their jobs. Those of unlucky cards do not count: one that waits for its
// retry looks the same.
func (s *stage) freezeAtWork(worker *process) (jobs []string) {
	s.t.Helper()
	s.until(worker.name+" is stopped at work", func() bool {
		worker.freeze()
		jobs = s.strings(`select job_id from run join accepted using(job_id) where worker like ?
			and job_id not in (select job_id from effect) and cast(substr(order_id, -6) as int) % 20 <> 3`, worker.name+"-%")
		if len(jobs) == 0 {
			worker.signal(syscall.SIGCONT)
		}
		return len(jobs) > 0
	})
	return jobs
}

// killBroker kills the broker while the producer has orders left, and starts it
// again when the producer has noticed.
func (s *stage) killBroker(producer *process) {
	s.t.Helper()
	producer.freeze()
	if n := s.numbers(); n.orders >= testOrders {
		s.t.Fatalf("the producer is done before the broker is killed: %+v", n)
	}
	if err := s.broker.kill(); err != nil {
		s.t.Fatal(err)
	}
	producer.signal(syscall.SIGCONT)
	s.until("the producer notices that the broker is gone", func() bool {
		return strings.Contains(producer.said(), "enqueueing again under the same ids")
	})
	if err := s.broker.restart(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// checkEffects wants every order charged, mailed and shipped once, or refused.
func (s *stage) checkEffects() {
	s.t.Helper()
	want := make(map[string]int)
	for n := 1; n <= testOrders; n++ {
		order := s.shop.ledger.order(n)
		if strings.HasPrefix(order.GetCard(), "refused") {
			want[order.GetOrderId()+" refusal"] = 1
			continue
		}
		for _, kind := range []kind{charge, receipt, parcel} {
			want[order.GetOrderId()+" "+string(kind)] = 1
		}
	}
	got := make(map[string]int)
	for _, effect := range s.strings(`select order_id || ' ' || kind from effect`) {
		got[effect]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("effects of orders (-want +got):\n%s", diff)
	}
}

// checkDeadLetters wants those of the refused cards, and no others.
func (s *stage) checkDeadLetters() {
	s.t.Helper()
	want, got := make(map[string]string), make(map[string]string)
	for _, job := range s.strings(`select job_id from effect where kind='refusal'`) {
		want[job] = provider.ClassPermanent
	}
	for page := ""; ; {
		letters, next, err := s.shop.provider.Dead.List(s.t.Context(), provider.DeadFilter{}, page)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, letter := range letters {
			got[letter.Job.ID] = letter.Failure.Class
		}
		if page = next; page == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("dead letters (-want +got):\n%s", diff)
	}
}

// process is a process of the shop.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error // of Wait, when done is closed
}

// start starts a command of the shop, and kills it when the test ends.
func (s *stage) start(name, command string, args ...string) *process {
	s.t.Helper()
	p := &process{t: s.t, name: name, log: filepath.Join(s.data, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(binary, append([]string{command, "-url", s.broker.url, "-data", s.data}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if s.t.Failed() {
			said := p.said()
			s.t.Logf("%s:\n%s", name, said[max(0, len(said)-4000):])
		}
	})
	return p
}

func (p *process) said() string {
	p.t.Helper()
	log, err := os.ReadFile(p.log)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(log)
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: signal %v: %v", p.name, s, err)
	}
}

// freeze stops the process, and returns when all its threads stand still.
func (p *process) freeze() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	for {
		state, err := exec.CommandContext(p.t.Context(), "ps", "-o", "state=", "-p", strconv.Itoa(p.cmd.Process.Pid)).Output()
		if err != nil {
			p.t.Fatalf("%s: ps: %v", p.name, err)
		}
		if strings.HasPrefix(string(state), "T") {
			return
		}
	}
}

// wait waits until the process has ended, and returns its error.
func (p *process) wait() error {
	p.t.Helper()
	select {
	case <-p.done:
		return p.err
	case <-time.After(3 * time.Minute):
		p.t.Fatalf("%s does not end", p.name)
		return nil
	}
}

// unknown returns how often a producer enqueued a job again because it did not know
// whether the broker had it.
func (p *process) unknown() int {
	p.t.Helper()
	found := regexp.MustCompile(`(\d+) of them after an unknown outcome`).FindStringSubmatch(p.said())
	if found == nil {
		p.t.Fatalf("%s did not say how often it tried again:\n%s", p.name, p.said())
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}
