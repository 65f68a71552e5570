package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// topics know which topics are there, and make those that are not.
type topics struct {
	store *store
	turns turns // of those who look for a topic, or make it

	mu    sync.Mutex
	known map[string]knownTopic
}

// knownTopic is a topic that was there.
type knownTopic struct {
	partitions int
	seen       time.Time
}

// partitionsAge is how long the number of a topic's partitions is not asked for again.
// Partitions that somebody adds are used after that time.
const partitionsAge = 5 * time.Second

// fresh reports whether it need not be asked for.
func (k knownTopic) fresh() bool { return k.partitions > 0 && time.Since(k.seen) < partitionsAge }

func newTopics(s *store) *topics { return &topics{store: s, known: make(map[string]knownTopic)} }

// target is where records go: the topic of a queue's jobs, or of its dead letters.
type target struct {
	queue    string
	settings kafkago.TopicConfig // with which it is made
	first    bool                // only the first partition is used, whatever others add
}

func (s *store) jobsOf(queue string) target { return target{queue, s.jobSettings(queue), false} }
func (s *store) deadOf(queue string) target { return target{queue, s.deadSettings(queue), true} }

// ready makes sure that a topic is there, and returns how many partitions of it are
// used. When ctx ends it says why that is not known.
func (t *topics) ready(ctx context.Context, to target) (partitions int, err error) {
	topic := to.settings.Topic
	if known := t.knows(topic); known.fresh() {
		return known.partitions, nil
	}
	if err := t.store.names.check(to.queue); err != nil {
		return 0, err
	}
	back, err := t.turns.take(ctx, topic)
	if err != nil {
		return 0, err
	}
	defer back()
	known := t.knows(topic)
	if known.fresh() { // somebody has looked meanwhile
		return known.partitions, nil
	}
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		partitions, err := t.find(ctx, to)
		if err == nil {
			t.saw(to, known.partitions, partitions)
			return partitions, nil
		}
		if err = explained(err); !passes(err) || !sleep(ctx, wait) {
			return 0, waited(ctx, err)
		}
	}
}

// knows returns what is known of a topic.
func (t *topics) knows(topic string) knownTopic {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[topic]
}

// find returns how many partitions of a topic are used. It makes the topic if it is not
// there.
func (t *topics) find(ctx context.Context, to target) (int, error) {
	partitions, err := t.look(ctx, to.settings.Topic)
	if err == nil && partitions == 0 {
		partitions, err = t.make(ctx, to.settings)
	}
	switch {
	case err != nil:
		return 0, err
	case partitions == 0:
		return 0, &Error{Problem: "the topic " + to.settings.Topic + " is not there", Remedy: "make it, as the package's documentation says"}
	case to.first:
		return 1, nil
	}
	return partitions, nil
}

// look returns how many partitions a topic has; 0 if it is not there. The client
// answers from what it knows, which may be some seconds old.
func (t *topics) look(ctx context.Context, topic string) (int, error) {
	r, err := t.store.client.Metadata(ctx, &kafkago.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return 0, err
	}
	switch found := r.Topics[0]; {
	case errors.Is(found.Error, kafkago.UnknownTopicOrPartition):
		return 0, nil
	case found.Error != nil:
		return 0, fmt.Errorf("topic %s: %w", topic, found.Error)
	default:
		return len(found.Partitions), nil
	}
}

// make makes a topic, if it may, and looks again.
func (t *topics) make(ctx context.Context, topic kafkago.TopicConfig) (int, error) {
	if t.store.cfg.Passive {
		if err := t.refresh(ctx); err != nil {
			return 0, err
		}
		return t.look(ctx, topic.Topic)
	}
	r, err := t.store.client.CreateTopics(ctx, &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{topic}})
	if err == nil {
		err = r.Errors[topic.Topic]
	}
	if err != nil && !errors.Is(err, kafkago.TopicAlreadyExists) {
		return 0, fmt.Errorf("make topic %s: %w", topic.Topic, err)
	}
	n, err := t.look(ctx, topic.Topic)
	if err == nil && n == 0 {
		err = kafkago.LeaderNotAvailable // it is there, and not everywhere
	}
	return n, err
}

// refresh asks the brokers for all topics and leaders: the client does so after each
// request to make topics, even for none.
func (t *topics) refresh(ctx context.Context) error {
	_, err := t.store.client.CreateTopics(ctx, &kafkago.CreateTopicsRequest{})
	return err
}

// saw puts on record how many partitions a topic has.
func (t *topics) saw(to target, before, now int) {
	topic := to.settings.Topic
	t.mu.Lock()
	t.known[topic] = knownTopic{partitions: now, seen: time.Now()}
	t.mu.Unlock()
	if before != 0 && now > before {
		t.store.news.emit(provider.Event{Kind: provider.Degraded, Queue: to.queue, Count: int64(now - before),
			Message: fmt.Sprintf("topic %s has %d partitions now, and had %d: jobs of one ordering key that were stored before and after may run out of order", topic, now, before)})
	}
}

// forget lets the next call look whether a topic is there.
func (t *topics) forget(to target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.known[to.settings.Topic]
	known.seen = time.Time{}
	t.known[to.settings.Topic] = known
}

// there reports whether a topic is there now.
func (t *topics) there(ctx context.Context, topic string) (bool, error) {
	n, err := t.look(ctx, topic)
	if err == nil && n == 0 {
		if err = t.refresh(ctx); err == nil {
			n, err = t.look(ctx, topic)
		}
	}
	return n > 0, err
}

// queues are the names of all queues that have a topic, of jobs or of dead letters,
// sorted.
func (s *store) queues(ctx context.Context, part string) ([]string, error) {
	if err := s.topics.refresh(ctx); err != nil {
		return nil, explained(err)
	}
	r, err := s.client.Metadata(ctx, &kafkago.MetadataRequest{})
	if err != nil {
		return nil, explained(err)
	}
	names := []string{}
	for _, topic := range r.Topics {
		if queue, ok := s.names.queue(part, topic.Name); ok && topic.Error == nil {
			names = append(names, queue)
		}
	}
	slices.Sort(names)
	return names, nil
}
