package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// What a topic takes beside its largest record: what Kafka puts around one, the
// ordering key, and why bytes are no record.
const (
	aroundJobs = 64 << 10
	aroundDead = 128 << 10
)

// jobSettings are those of a new topic of jobs: nothing in it expires.
func (s *store) jobSettings(queue string) kafkago.TopicConfig {
	return s.settings(s.names.jobs(queue), s.cfg.Partitions, s.cfg.MaxRecord+aroundJobs, "delete")
}

// deadSettings are those of a new topic of dead letters: one partition, so that they
// have an order, from which the broker takes what was replaced by a mark that it is gone.
func (s *store) deadSettings(queue string) kafkago.TopicConfig {
	return s.settings(s.names.dead(queue), 1, s.cfg.MaxRecord+aroundDead, "compact,delete")
}

func (s *store) settings(topic string, partitions, largest int, cleanup string) kafkago.TopicConfig {
	return kafkago.TopicConfig{
		Topic:             topic,
		NumPartitions:     partitions,
		ReplicationFactor: s.cfg.Replication,
		ConfigEntries: []kafkago.ConfigEntry{
			{ConfigName: "cleanup.policy", ConfigValue: cleanup},
			{ConfigName: "retention.ms", ConfigValue: "-1"},
			{ConfigName: "retention.bytes", ConfigValue: "-1"},
			{ConfigName: "min.insync.replicas", ConfigValue: strconv.Itoa(s.cfg.inSync())},
			{ConfigName: "max.message.bytes", ConfigValue: strconv.Itoa(largest)},
			{ConfigName: "message.timestamp.type", ConfigValue: "LogAppendTime"},
		},
	}
}

// What a topic's retention must be longer than, beside the longest max age.
const (
	usualMaxAge    = 7 * 24 * time.Hour
	retentionSlack = 24 * time.Hour
)

// checkRetention refuses topics of a queue that exist and from which Kafka takes jobs
// that are not settled, or dead letters.
func (s *store) checkRetention(ctx context.Context, queue string, maxAge time.Duration) error {
	const remedy = "set cleanup.policy=delete, retention.ms=-1 and retention.bytes=-1: what is settled is deleted by the workers"
	topic := s.names.jobs(queue)
	found, err := s.settingsOf(ctx, queue, topic)
	if err != nil || found == nil {
		return err
	}
	if policy := found["cleanup.policy"]; strings.Contains(policy, "compact") {
		return setupError(fmt.Sprintf("topic %s has the cleanup.policy %s, and loses jobs that share an ordering key", topic, policy), remedy)
	}
	if most := found["retention.bytes"]; most != "" && most != "-1" {
		return setupError(fmt.Sprintf("topic %s has a retention.bytes of %s, and loses jobs when it has more", topic, most), remedy)
	}
	needed := orElse(maxAge, usualMaxAge) + retentionSlack
	kept, err := strconv.ParseInt(found["retention.ms"], 10, 64)
	if err == nil && kept >= 0 && kept < needed.Milliseconds() {
		return setupError(fmt.Sprintf("topic %s has a retention.ms of %d, %v, and jobs may wait there for %v and a day", topic, kept, time.Duration(kept)*time.Millisecond, needed-retentionSlack), remedy)
	}
	return s.checkDead(ctx, queue)
}

// checkDead refuses a topic of dead letters that exists and loses some.
func (s *store) checkDead(ctx context.Context, queue string) error {
	topic := s.names.dead(queue)
	if there, err := s.topics.there(ctx, topic); err != nil || !there {
		return explained(err)
	}
	found, err := s.settingsOf(ctx, queue, topic)
	if err != nil || found == nil {
		return err
	}
	for _, key := range []string{"retention.ms", "retention.bytes"} {
		if value := found[key]; strings.Contains(found["cleanup.policy"], "delete") && value != "" && value != "-1" {
			return setupError(fmt.Sprintf("topic %s has a %s of %s, and loses dead letters", topic, key, value),
				"set cleanup.policy=compact,delete, retention.ms=-1 and retention.bytes=-1")
		}
	}
	return nil
}

// settingsOf returns the settings of a topic; nil with an event if the user may not read
// them.
func (s *store) settingsOf(ctx context.Context, queue, topic string) (found map[string]string, err error) {
	err = s.insist(ctx, func(ctx context.Context) (err error) {
		found, err = s.describe(ctx, topic)
		return err
	})
	if errors.Is(err, kafkago.TopicAuthorizationFailed) {
		s.news.emit(provider.Event{Kind: provider.Degraded, Queue: queue, Err: err,
			Message: "the retention of topic " + topic + " is not checked, because the user may not read its settings"})
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("settings of topic %s: %w", topic, err)
	}
	return found, nil
}

// describe returns the settings of a topic.
func (s *store) describe(ctx context.Context, topic string) (map[string]string, error) {
	r, err := s.client.DescribeConfigs(ctx, &kafkago.DescribeConfigsRequest{Resources: []kafkago.DescribeConfigRequestResource{{
		ResourceType: kafkago.ResourceTypeTopic, ResourceName: topic,
		ConfigNames: []string{"cleanup.policy", "retention.ms", "retention.bytes"},
	}}})
	if err != nil {
		return nil, err
	}
	found := make(map[string]string)
	for _, resource := range r.Resources {
		if resource.Error != nil {
			return nil, resource.Error
		}
		for _, entry := range resource.ConfigEntries {
			found[entry.ConfigName] = entry.ConfigValue
		}
	}
	return found, nil
}
