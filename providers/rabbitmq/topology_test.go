package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// wantSetup checks that an error says what is wrong and what to do.
func wantSetup(t *testing.T, err error, words ...string) {
	t.Helper()
	var setup *provider.SetupError
	if !errors.As(err, &setup) || setup.Problem == "" || setup.Remedy == "" {
		t.Errorf("err = %v; want a *SetupError", err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("err = %v; want that it says %q", err, word)
		}
	}
}

func (b *broker) declare(queue string, args amqp.Table) {
	b.t.Helper()
	conn, err := amqp.Dial(b.cfg.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := ch.QueueDeclare(queue, true, false, false, false, args); err != nil {
		b.t.Fatal(err)
	}
}

func TestAQueueWithOtherArgumentsIsNamed(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	s, _ := b.open()
	limited := s.names.jobArguments()
	limited["x-delivery-limit"] = int64(20)
	b.declare(s.names.jobs("classic"), amqp.Table{"x-queue-type": "classic"})
	b.declare(s.names.jobs("limited"), limited)
	for queue, argument := range map[string]string{"classic": "x-queue-type", "limited": "x-delivery-limit"} {
		_, err := s.Subscribe(t.Context(), options(1, queue))
		if queue == "classic" { // which of them is named is the broker's choice
			argument = "x-"
		}
		wantSetup(t, err, "backstage.jobs."+queue, argument, "another prefix")
		stored := s.Publish(t.Context(), someJobs(1, queue), provider.PublishOptions{})[0]
		if stored.Outcome != provider.OutcomeRefused {
			t.Errorf("a job for queue %s: %s, %v", queue, stored.Outcome, stored.Err)
		}
		wantSetup(t, stored.Err, argument)
	}
	// Others are not kept from their work.
	publish(t, s, someJobs(1, "work")...)
}

func TestPassiveDeclaresNothingAndLooks(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	active, _ := b.open()
	b.cfg.Passive = true
	b.cfg.Management = brokers.RabbitMQManagement(b.server)
	passive, _ := b.open()
	_, err := passive.Subscribe(t.Context(), options(1, "work"))
	wantSetup(t, err, "backstage.", "declare it")
	stored := passive.Publish(t.Context(), someJobs(1, "work"), provider.PublishOptions{})[0]
	wantSetup(t, stored.Err, "declare it")
	delayed := aJob("delayed", "work")
	delayed.Delay = time.Second
	publish(t, active, aJob("plain", "work"), delayed)
	if err := active.topology.usual(t.Context()); err != nil {
		t.Fatal(err)
	}
	delayed.ID = "by the passive one"
	publish(t, passive, delayed)
	sub := subscribe(t, passive, options(3, "work"))
	ack(t, receive(t, sub, 3)...)
	other := active.names.jobArguments()
	delete(other, "x-dead-letter-routing-key")
	b.declare(active.names.jobs("wrong"), other)
	_, err = passive.Subscribe(t.Context(), options(1, "wrong"))
	wantSetup(t, err, "backstage.jobs.wrong", "x-dead-letter-routing-key")
}

func TestWhatCanNeverWorkIsNamed(t *testing.T) {
	t.Parallel()
	s, _ := sharedBroker(t).open()
	for words, change := range map[string]func(*provider.SubscribeOptions){
		"3s or longer":     func(o *provider.SubscribeOptions) { o.Lease = 2 * time.Second },
		"consumer_timeout": func(o *provider.SubscribeOptions) { o.LongestRun = 30 * time.Minute },
		"2 slots":          func(o *provider.SubscribeOptions) { o.MaxUnsettled = 2; o.Lanes = options(1, "a", "b", "c").Lanes },
		"too long":         func(o *provider.SubscribeOptions) { o.Lanes[0].Queue = strings.Repeat("q", 250) },
	} {
		opts := options(1, "work")
		change(&opts)
		_, err := s.Subscribe(t.Context(), opts)
		wantSetup(t, err, words)
	}
	for what, job := range map[string]provider.Job{
		"ordering key": {ID: "a", Task: "t", Queue: "q", OrderingKey: "k"},
		"longest":      {ID: "a", Task: "t", Queue: "q", Delay: longestDelay + 1},
		"bytes":        {ID: "a", Task: "t", Queue: "q", Payload: make([]byte, mostBytes)},
		"too long":     {ID: "a", Task: "t", Queue: strings.Repeat("q", 250)},
	} {
		stored := s.Publish(t.Context(), []provider.Job{job}, provider.PublishOptions{})[0]
		if stored.Outcome != provider.OutcomeRefused || stored.Err == nil || !strings.Contains(stored.Err.Error(), what) {
			t.Errorf("a job with a wrong %s: %s, %v", what, stored.Outcome, stored.Err)
		}
	}
}

// Each of many jobs learns for itself that there is no queue for it.
func TestReturnsAreTold(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	active, _ := b.open()
	publish(t, active, someJobs(1, "there")...)
	var parcels []*parcel
	for i := range 3000 {
		queue := active.names.jobs("there")
		if i%3 == 0 {
			queue = active.names.jobs("nowhere")
		}
		parcels = append(parcels, &parcel{key: queue, message: message(fmt.Sprint(i), []byte("x"))})
	}
	var wg sync.WaitGroup
	for from := 0; from < len(parcels); from += 300 {
		wg.Go(func() { active.publisher.deliver(t.Context(), parcels[from:from+300]) })
	}
	wg.Wait()
	for i, m := range parcels {
		if stored := m.outcome == provider.OutcomeStored; stored == (i%3 == 0) || m.absent == stored {
			t.Fatalf("message %d: %s, %v", i, m.outcome, m.err)
		}
	}
}

func TestAQueueThatSomebodyDeletedIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	s, _ := b.open()
	sub := subscribe(t, s, options(1, "work"))
	for range 2 {
		ask(t, http.MethodDelete, b.server, "queues/"+b.vhost+"/"+s.names.jobs("work"), "")
		publish(t, s, aJob("after", "work"))
		ack(t, receive(t, sub, 1)...)
	}
	until(t, "the worker is well", func() bool { return s.provider.Health(t.Context()) == nil })
}

// A policy that makes the broker give jobs up loses none of them.
func TestAPolicyWithADeliveryLimitLosesNothing(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	b.cfg.Management = brokers.RabbitMQManagement(b.server)
	ask(t, http.MethodPut, b.server, "policies/"+b.vhost+"/limit", `{"pattern":"\\.jobs\\.","definition":{"delivery-limit":1},"apply-to":"queues"}`)
	s, log := b.open()
	publish(t, s, someJobs(5, "work")...)
	for range 4 {
		dying, _ := b.open()
		receive(t, subscribe(t, dying, options(5, "work")), 1)
		dying.die()
	}
	sub := subscribe(t, s, options(5, "work"))
	seen := make(map[string]bool)
	for len(seen) < 5 {
		d := receive(t, sub, 1)[0]
		if d.job.Counters.Crashes == 0 {
			t.Errorf("%s does not count that it came back", d.job.ID)
		}
		seen[d.job.ID] = true
		ack(t, d)
	}
	if !log.has(provider.Degraded, "the policy limit sets delivery-limit to 1") {
		t.Errorf("the policy is not reported: %+v", log.all)
	}
	until(t, "what was brought back is reported", func() bool { return log.has(provider.Degraded, "gave a job up (delivery_limit)") })
}

// A broker that destroys what comes back is found out before a worker starts.
func TestABrokerThatDestroysReturnsIsFoundOut(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	ask(t, http.MethodPut, b.server, "policies/"+b.vhost+"/none", `{"pattern":".*","definition":{"delivery-limit":0},"apply-to":"queues"}`)
	s, _ := b.open()
	_, err := s.Subscribe(t.Context(), options(1, "work"))
	wantSetup(t, err, "delivery-limit")
}

// Connections that die before they have started anything convict nobody.
func TestDeathsBeforeAnyStartLoseNothing(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	const jobs = 60
	s, _ := b.open()
	publish(t, s, someJobs(jobs, "work")...)
	for range often(5, 25) {
		dying, _ := b.open()
		subscribe(t, dying, options(20, "work"))
		dying.die()
	}
	sub := subscribe(t, s, options(jobs, "work"))
	ack(t, receive(t, sub, jobs)...)
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	if letters, _, err := s.provider.Dead.List(ctx, provider.DeadFilter{}, ""); err != nil || len(letters) > 0 {
		t.Errorf("%d dead letters, %v", len(letters), err)
	}
}

// list asks the management API for what a virtual host has.
func (b *broker) list(kind string) map[string]map[string]any {
	b.t.Helper()
	response, err := http.Get(brokers.RabbitMQManagement(b.server) + "/api/" + kind + "/" + b.vhost)
	if err != nil {
		b.t.Fatalf("management API: %v", err)
	}
	defer response.Body.Close()
	var list []struct {
		Name      string
		Durable   bool
		Arguments map[string]any
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		b.t.Fatalf("management API: %v", err)
	}
	all := make(map[string]map[string]any)
	for _, one := range list {
		if !one.Durable {
			b.t.Errorf("%s %s is not durable", kind, one.Name)
		}
		if !strings.HasPrefix(one.Name, "amq.") && one.Name != "" { // RabbitMQ's own
			all[one.Name] = one.Arguments
		}
	}
	return all
}

// What is in the broker is what the package comment says, word for word.
func TestWhatIsInTheBrokerIsDocumented(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	s, _ := b.open()
	delayed := aJob("delayed", "mail")
	delayed.Delay = ladderGrain + 5*8*ladderGrain // 1 on level 0, 5 on level 1
	publish(t, s, aJob("dead", "mail"), delayed)
	sub := subscribe(t, s, options(1, "mail"))
	if err := receive(t, sub, 1)[0].DeadLetter(t.Context(), provider.Failure{Class: provider.ClassPermanent}); err != nil {
		t.Fatal(err)
	}
	kept := map[string]any{"x-queue-type": "quorum", "x-overflow": "reject-publish", "x-delivery-limit": 1e6}
	with := func(more map[string]any) map[string]any {
		all := maps.Clone(kept)
		maps.Copy(all, more)
		return all
	}
	rung := func(ms float64, below string) map[string]any {
		all := with(map[string]any{"x-message-ttl": ms, "x-dead-letter-strategy": "at-least-once", "x-dead-letter-exchange": below})
		delete(all, "x-delivery-limit")
		return all
	}
	want := map[string]map[string]any{
		"backstage.jobs.mail": with(map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "backstage.rescue", "x-dead-letter-strategy": "at-least-once"}),
		"backstage.dead.mail": kept,
		"backstage.rescue":    kept,
		"backstage.queues":    kept,
	}
	for digit := 1; digit <= 7; digit++ {
		want[fmt.Sprintf("backstage.delay.0.%d", digit)] = rung(float64(digit)*250, "backstage.due")
	}
	want["backstage.delay.1.5"] = rung(5*8*250, "backstage.delay.0")
	if diff := cmp.Diff(want, b.list("queues")); diff != "" {
		t.Errorf("queues and their arguments (-documented +there):\n%s", diff)
	}
	exchanges := map[string]map[string]any{"backstage.due": {}}
	for level := range 8 {
		exchanges[fmt.Sprintf("backstage.delay.%d", level)] = map[string]any{}
	}
	if diff := cmp.Diff(exchanges, b.list("exchanges")); diff != "" {
		t.Errorf("exchanges (-documented +there):\n%s", diff)
	}
}

// The permissions that the package comment names are enough for all that there is.
func TestTheDocumentedPermissionsAreEnough(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	user := "u" + b.vhost
	ask(t, http.MethodPut, b.server, "users/"+user, `{"password":"p","tags":""}`)
	t.Cleanup(func() { ask(t, http.MethodDelete, b.server, "users/"+user, "") })
	ask(t, http.MethodPut, b.server, "permissions/"+b.vhost+"/"+user, `{"configure":"^backstage\\.","write":"^(backstage\\.|amq\\.default$)","read":"^backstage\\."}`)
	b.cfg.URL = strings.Replace(b.cfg.URL, "guest:guest", user+":p", 1)
	s, _ := b.open()
	delayed := aJob("delayed", "work")
	delayed.Delay = ladderGrain
	publish(t, s, aJob("plain", "work"), delayed)
	sub := subscribe(t, s, options(2, "work"))
	for _, d := range receive(t, sub, 2) {
		if err := d.DeadLetter(t.Context(), provider.Failure{Class: provider.ClassPermanent}); err != nil {
			t.Fatal(err)
		}
	}
	letters, _, err := s.provider.Dead.List(t.Context(), provider.DeadFilter{}, "")
	if err != nil || len(letters) != 2 {
		t.Fatalf("%d dead letters, %v; want 2", len(letters), err)
	}
	if stored, err := s.provider.Dead.Replay(t.Context(), letters[0].Address); err != nil || stored[0].Outcome != provider.OutcomeStored {
		t.Errorf("replay: %+v, %v", stored, err)
	}
	ack(t, receive(t, sub, 1)...)
	if q, err := s.provider.Stats.Queue(t.Context(), "work"); err != nil || q.Dead != provider.Measured[int64](1) {
		t.Errorf("numbers: %+v, %v; want one dead letter", q, err)
	}
	if err := s.provider.Health(t.Context()); err != nil {
		t.Errorf("health: %v", err)
	}
}

// Numbers that nobody can tell are unknown, and not zero.
func TestNumbersAreKnownOrUnknown(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	blind, _ := b.open()
	b.cfg.Management = brokers.RabbitMQManagement(b.server)
	seeing, _ := b.open()
	publish(t, blind, someJobs(3, "work")...)
	receive(t, subscribe(t, blind, options(1, "work")), 1)
	q, err := blind.provider.Stats.Queue(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	if depth, known := q.Depth.Get(); depth != 2 || !known {
		t.Errorf("%d jobs wait, known: %t; want 2", depth, known)
	}
	for what, known := range map[string]bool{"in flight": isKnown(q.InFlight), "oldest ready": isKnown(q.OldestReady), "held": isKnown(q.Held)} {
		if known {
			t.Errorf("%s is known: %+v", what, q)
		}
	}
	until(t, "the management API tells that one is in flight", func() bool {
		q, err := seeing.provider.Stats.Queue(t.Context(), "work")
		return err == nil && q.InFlight == provider.Measured[int64](1)
	})
}

func isKnown[T any](m provider.Measure[T]) bool {
	_, known := m.Get()
	return known
}
