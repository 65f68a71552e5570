//go:build unix

package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
	"github.com/google/go-cmp/cmp"
)

// broker is what the shop runs on.
type broker struct {
	url    string
	server *brokers.Server // nil where there is none
}

func embeddedBroker(t *testing.T) broker {
	return broker{url: "embedded:" + filepath.Join(t.TempDir(), "queue.db")}
}

// redisBroker is a Redis that has on disk what it confirms.
func redisBroker(t *testing.T) broker {
	r := brokers.RequireRedis(t, brokers.RedisOptions{Args: []string{"--appendfsync", "always"}})
	return broker{url: "redis://" + r.Addr() + "/0", server: r.Server}
}

// rabbitMQBroker is a RabbitMQ, which has no claims of its own.
func rabbitMQBroker(t *testing.T) broker {
	r := brokers.RequireRabbitMQ(t, brokers.RabbitMQOptions{})
	return broker{url: r.URL() + "?lend=" + lender(t), server: r.Server}
}

// kafkaBroker is a Kafka of one node, which has neither delays nor claims of its own.
func kafkaBroker(t *testing.T) broker {
	k := brokers.RequireKafka(t, brokers.KafkaOptions{})
	return broker{url: "kafka://" + k.Addr() + "?replication=1&lend=" + lender(t), server: k.Server}
}

// lender is the address, as a setting, of a file that lends delays and claims.
func lender(t *testing.T) string {
	return url.QueryEscape("embedded:" + filepath.Join(t.TempDir(), "lent.db"))
}

func TestEveryAcceptedOrderIsDoneOnceWhateverIsKilled(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) broker{
		"embedded": embeddedBroker,
		"redis":    redisBroker,
		"rabbitmq": rabbitMQBroker,
		"kafka":    kafkaBroker,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killAndCount(t, open(t))
		})
	}
}

const (
	// some is how many orders a producer enqueues, paced how many a second at most
	// where something is to happen meanwhile.
	some, paced = 200, 100
	// slots is how many handlers a worker runs at once, unsettled how many jobs it has
	// at most, those included that are being settled.
	slots     = 8
	unsettled = 2*slots + 16
)

func killAndCount(t *testing.T, b broker) {
	s := newStage(t, b)
	victim, second := s.worker("worker-1"), s.worker("worker-2")
	held := s.freezeAtWork(victim)
	victim.signal(syscall.SIGKILL)
	third := s.worker("worker-3")
	most, unknown := unsettled, 0

	if b.server != nil {
		// A broker that was silent stores what it was sent when it goes on; one that was
		// dead does not.
		unknown = s.breakBroker(b.server.Pause, b.server.Resume)
		if unknown == 0 {
			t.Error("the producer had no unknown outcome, although the broker was silent")
		}
		unknown += s.breakBroker(b.server.Kill, func() error { return b.server.Restart(t.Context()) })
		most += 2 * 2 * unsettled
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
		if runs := s.strings(`select worker from run where job_id=?`, job); len(runs) < 2 {
			t.Errorf("job %s, which the killed worker ran, has only the runs by %q", job, runs)
		}
	}
	n := s.numbers()
	most = 3 * (most + unknown) // a second run of a charge may make its next jobs a second time
	if n.restarted > most {
		t.Errorf("%d second runs, want at most %d", n.restarted, most)
	}
	t.Logf("%d orders: %d second runs, of at most %d, and %d found their effect done; the killed worker ran %d charges, %d outcomes were unknown",
		n.orders, n.restarted, most, n.recognised, len(held), unknown)
	out, err := shopCommand(t, "report", "-url", b.url, "-data", s.data)
	if err != nil {
		t.Errorf("report: %v\n%s", err, out)
	}
	wantLines(t, out, fmt.Sprintf(`(?m)^ +%d  orders accepted$`, n.orders), `(?m)^ +0  \+ not finished yet$`, `(?m)^ +0  dead letters of other jobs$`)
}

func TestWhatTheBrokerLacksIsSaidBeforeAnythingIsStored(t *testing.T) {
	t.Parallel()
	at := brokers.RabbitMQURL(brokers.SharedRabbitMQ(t)) + "?prefix=shop-test-" + strings.ToLower(rand.Text())
	out, err := shopCommand(t, "produce", "-url", at, "-data", t.TempDir())
	if want := "provider rabbitmq has no Claims"; err == nil || !strings.Contains(out, want) {
		t.Errorf("%v\n%s\nwant an error that says %q", err, out, want)
	}
}

// stage is a shop, seen from outside.
type stage struct {
	t         *testing.T
	data      string
	broker    broker
	shop      *shop
	producers int // that were started
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
	return s.start(name, "worker", "-name", name, "-lease", "3s", "-concurrency", strconv.Itoa(slots))
}

func (s *stage) producer(args ...string) *process {
	s.producers++
	return s.start(fmt.Sprintf("producer-%d", s.producers), "produce", append(args, "-orders", strconv.Itoa(some))...)
}

func (s *stage) numbers() numbers {
	s.t.Helper()
	n, err := s.shop.ledger.numbers(s.t.Context())
	if err != nil {
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
		if s.numbers().open() == 0 {
			if err := s.producer().wait(); err != nil {
				s.t.Fatalf("producer: %v", err)
			}
		}
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

// breakBroker does something to the broker while a producer has orders left, and
// undoes it when the producer has noticed. It returns how many unknown outcomes the
// producer had.
func (s *stage) breakBroker(do, undo func() error) (unknown int) {
	s.t.Helper()
	producer := s.freezeMidway()
	if err := do(); err != nil {
		s.t.Fatal(err)
	}
	producer.signal(syscall.SIGCONT)
	s.until("the producer notices that the broker does not answer", func() bool {
		return strings.Contains(producer.said(), "enqueueing again under the same ids")
	})
	if err := undo(); err != nil {
		s.t.Fatal(err)
	}
	if err := producer.wait(); err != nil {
		s.t.Fatalf("producer: %v", err)
	}
	return producer.unknown()
}

// freezeMidway starts a producer and stops it while it has at least a batch to
// enqueue. One that was too fast is followed by another.
func (s *stage) freezeMidway() (producer *process) {
	s.t.Helper()
	s.until("a producer is stopped midway", func() bool {
		before := s.numbers().orders
		producer = s.producer("-rate", strconv.Itoa(paced))
		s.until("the producer enqueues", func() bool { return !producer.alive() || s.numbers().orders > before })
		if producer.freeze() && s.numbers().orders <= before+some-2*batch {
			return true
		}
		if producer.alive() {
			producer.signal(syscall.SIGCONT)
		}
		if err := producer.wait(); err != nil {
			s.t.Fatalf("producer: %v", err)
		}
		return false
	})
	return producer
}

// checkEffects wants every order charged, mailed and shipped once, or refused.
func (s *stage) checkEffects() {
	s.t.Helper()
	want := make(map[string]int)
	for n := range s.numbers().orders {
		order := s.shop.ledger.order(n + 1)
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

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// freeze stops the process, and returns when all its threads stand still; false if
// it has ended before.
func (p *process) freeze() bool {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("%s: stop: %v", p.name, err)
	}
	for p.alive() {
		state, err := exec.CommandContext(p.t.Context(), "ps", "-o", "state=", "-p", strconv.Itoa(p.cmd.Process.Pid)).Output()
		if errors.Is(err, exec.ErrNotFound) {
			p.t.Fatal(err)
		}
		if strings.HasPrefix(string(state), "T") {
			return true
		}
	}
	return false
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
