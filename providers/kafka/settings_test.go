package kafka

import (
	"errors"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// make makes a topic of jobs by hand, with two partitions and some settings of its own.
func (c *cluster) make(s *store, queue string, settings map[string]string) {
	c.t.Helper()
	c.makeTopic(s, s.names.jobs(queue), settings)
}

func (c *cluster) makeTopic(s *store, name string, settings map[string]string) {
	c.t.Helper()
	topic := kafkago.TopicConfig{Topic: name, NumPartitions: 2, ReplicationFactor: 1}
	for key, value := range settings {
		topic.ConfigEntries = append(topic.ConfigEntries, kafkago.ConfigEntry{ConfigName: key, ConfigValue: value})
	}
	r, err := s.client.CreateTopics(c.t.Context(), &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{topic}})
	if err == nil {
		err = r.Errors[topic.Topic]
	}
	if err != nil {
		c.t.Fatalf("make topic %s: %v", topic.Topic, err)
	}
}

// prepare makes and checks a queue's topic, as a worker does when it starts.
func prepare(t *testing.T, s *store, queue string, maxAge time.Duration) error {
	if _, err := s.topics.ready(t.Context(), s.jobsOf(queue)); err != nil {
		return err
	}
	return s.checkRetention(t.Context(), queue, maxAge)
}

func TestATopicThatLosesJobsIsRefusedByName(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	s, _ := c.open()
	for queue, made := range map[string]struct {
		settings map[string]string
		maxAge   time.Duration
		says     string
	}{
		"usual":    {nil, 0, "retention.ms of 604800000"}, // a week
		"short":    {map[string]string{"retention.ms": "1000"}, time.Hour, "retention.ms of 1000"},
		"enough":   {map[string]string{"retention.ms": "604800000"}, 6 * 24 * time.Hour, ""},
		"ever":     {map[string]string{"retention.ms": "-1"}, 0, ""},
		"bounded":  {map[string]string{"retention.ms": "-1", "retention.bytes": "1000000"}, 0, "retention.bytes of 1000000"},
		"compact":  {map[string]string{"retention.ms": "-1", "cleanup.policy": "compact"}, 0, "cleanup.policy compact"},
		"ours":     {map[string]string{"retention.ms": "-1", "cleanup.policy": "delete"}, 1000 * 24 * time.Hour, ""},
		"too long": {map[string]string{"retention.ms": "864000000"}, 10 * 24 * time.Hour, "wait there for 240h0m0s and a day"},
	} {
		c.make(s, queue, made.settings)
		err := prepare(t, s, queue, made.maxAge)
		var setup *provider.SetupError
		switch {
		case made.says == "" && err != nil:
			t.Errorf("%s: %v", queue, err)
		case made.says != "" && (!errors.As(err, &setup) || !strings.Contains(err.Error(), made.says) || !strings.Contains(err.Error(), s.names.jobs(queue))):
			t.Errorf("%s: %v, want a SetupError that names the topic and says %q", queue, err, made.says)
		}
	}
}

func TestATopicThatLosesDeadLettersIsRefusedByName(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	s, _ := c.open()
	for queue, made := range map[string]struct {
		settings map[string]string
		says     string
	}{
		"usual":   {nil, "retention.ms of 604800000"},
		"bounded": {map[string]string{"retention.ms": "-1", "retention.bytes": "1000000"}, "retention.bytes of 1000000"},
		"compact": {map[string]string{"cleanup.policy": "compact"}, ""},
		"ever":    {map[string]string{"retention.ms": "-1"}, ""},
	} {
		c.makeTopic(s, s.names.dead(queue), made.settings)
		err := prepare(t, s, queue, 0)
		var setup *provider.SetupError
		switch {
		case made.says == "" && err != nil:
			t.Errorf("%s: %v", queue, err)
		case made.says != "" && (!errors.As(err, &setup) || !strings.Contains(err.Error(), made.says) || !strings.Contains(err.Error(), s.names.dead(queue))):
			t.Errorf("%s: %v, want a SetupError that names the topic and says %q", queue, err, made.says)
		}
	}
	// It has two partitions, and letters are in the first.
	bury(t, s, someJobs(20, "ever")...)
	if got := listed(t, s, provider.DeadFilter{Queue: "ever"}); len(got) != 20 {
		t.Errorf("%d letters are listed, want 20", len(got))
	}
}

func TestTopicsAreMadeAsDocumented(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.cfg.Partitions = 5
	s, _ := c.open()
	partitions, err := s.topics.ready(t.Context(), s.jobsOf("q"))
	if err != nil || partitions != 5 {
		t.Fatalf("%d partitions, %v; want 5", partitions, err)
	}
	bury(t, s, aJob("1", "q"))
	for topic, want := range map[string]map[string]string{
		s.names.jobs("q"): {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
		s.names.dead("q"): {"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1"},
	} {
		found, err := s.describe(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range want {
			if found[key] != value {
				t.Errorf("topic %s has %s=%s, want %s", topic, key, found[key], value)
			}
		}
	}
}

func TestPassiveMakesNoTopics(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	active, _ := c.open()
	c.cfg.Passive, c.cfg.Timeout = true, 2*time.Second
	s, _ := c.open()
	stored := s.Publish(t.Context(), someJobs(1, "q"), provider.PublishOptions{})
	if stored[0].Outcome != provider.OutcomeRefused || !strings.Contains(stored[0].Err.Error(), s.names.jobs("q")+" is not there") {
		t.Errorf("%s, %v; want refused, naming the topic", stored[0].Outcome, stored[0].Err)
	}
	if queues, err := s.queues(t.Context(), partJobs); err != nil || len(queues) != 0 {
		t.Errorf("there are topics of %v, %v", queues, err)
	}
	c.make(active, "q", map[string]string{"retention.ms": "-1"})
	publish(t, s, someJobs(10, "q")...)
}
