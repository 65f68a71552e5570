package kafka

import (
	"context"
	"errors"
	"io"
	"net"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Error is why Kafka did not do what was asked, and what to do about it.
type Error struct {
	// Problem says what is wrong, in words.
	Problem string
	// Remedy says what to do.
	Remedy string
	// Err is what Kafka or the connection said.
	Err error
}

// Error returns all of it in one line.
func (e *Error) Error() string {
	said := ""
	if e.Err != nil {
		said = " (" + e.Err.Error() + ")"
	}
	return "kafka: " + e.Problem + said + "; " + e.Remedy
}

// Unwrap returns what Kafka or the connection said.
func (e *Error) Unwrap() error { return e.Err }

// fate is what an answer means for records that were sent.
type fate int

const (
	inDoubt   fate = iota // they may be stored or not
	notStored             // they are not, and may be if they are sent again
	refused               // they are not, and never will be
	tooLarge              // they are not, and may be in smaller requests
)

// fault is what is known of one of Kafka's errors.
type fault struct {
	code            kafkago.Error
	fate            fate
	problem, remedy string
	moved           bool // what is known of topics and leaders is old
	blocked         bool // nobody can write
}

// faults is the table of what Kafka can say.
func faults() []fault {
	const (
		soon    = "it is tried again"
		acl     = "allow it: the package's documentation lists the operations"
		replica = "bring brokers back: a record needs min.insync.replicas of them"
	)
	return []fault{
		{code: kafkago.UnknownTopicOrPartition, fate: notStored, moved: true, problem: "the topic is not there, or is new", remedy: soon + "; with Passive, make it"},
		{code: kafkago.LeaderNotAvailable, fate: notStored, moved: true, problem: "the partition has no leader", remedy: soon},
		{code: kafkago.NotLeaderForPartition, fate: notStored, moved: true, problem: "another broker leads the partition now", remedy: soon},
		{code: kafkago.ReplicaNotAvailable, fate: notStored, moved: true, problem: "the broker has no copy of the partition", remedy: soon},
		{code: kafkago.FencedLeaderEpoch, fate: notStored, moved: true, problem: "another broker leads the partition now", remedy: soon},
		{code: kafkago.UnknownLeaderEpoch, fate: notStored, moved: true, problem: "another broker leads the partition now", remedy: soon},
		{code: kafkago.BrokerNotAvailable, fate: notStored, moved: true, problem: "the broker is not there", remedy: soon},
		{code: kafkago.KafkaStorageError, fate: notStored, moved: true, blocked: true, problem: "the broker's disk fails or is full", remedy: "look into its log"},
		{code: kafkago.NotEnoughReplicas, fate: notStored, blocked: true, problem: "too few brokers have the partition", remedy: replica},
		{code: kafkago.ThrottlingQuotaExceeded, fate: notStored, problem: "the user's quota is used up", remedy: "raise it; " + soon},
		{code: kafkago.PolicyViolation, fate: refused, problem: "a policy of the cluster forbids it", remedy: "make the topics as the policy allows, with Passive"},
		{code: kafkago.GroupLoadInProgress, fate: notStored, problem: "the group's coordinator is starting", remedy: soon},
		{code: kafkago.GroupCoordinatorNotAvailable, fate: notStored, problem: "the group's coordinator is not there", remedy: soon},
		{code: kafkago.NotCoordinatorForGroup, fate: notStored, moved: true, problem: "another broker is the group's coordinator now", remedy: soon},
		{code: kafkago.NotController, fate: notStored, moved: true, problem: "another broker is the controller now", remedy: soon},

		{code: kafkago.NotEnoughReplicasAfterAppend, fate: inDoubt, blocked: true, problem: "one broker has it, and too few others", remedy: replica + "; the same id may be tried again"},
		{code: kafkago.RequestTimedOut, fate: inDoubt, problem: "the brokers did not confirm in time", remedy: "the same id may be tried again"},
		{code: kafkago.NetworkException, fate: inDoubt, problem: "the broker ended the connection", remedy: "the same id may be tried again"},
		{code: kafkago.Unknown, fate: inDoubt, problem: "the broker failed", remedy: "look into its log; the same id may be tried again"},

		{code: kafkago.MessageSizeTooLarge, fate: tooLarge, problem: "the record is larger than the topic's max.message.bytes", remedy: "raise it, or store what is large elsewhere"},
		{code: kafkago.RecordListTooLarge, fate: tooLarge, problem: "the record is larger than the broker takes", remedy: "raise segment.bytes, or store what is large elsewhere"},
		{code: kafkago.InvalidMessage, fate: notStored, problem: "the request was damaged on its way", remedy: soon},
		{code: kafkago.InvalidTopic, fate: refused, problem: "the topic's name is not allowed, or too like another's", remedy: "use another prefix"},
		{code: kafkago.InvalidRecord, fate: refused, problem: "the broker does not take such a record", remedy: "compare the topic's settings with the package's documentation"},
		{code: kafkago.InvalidTimestamp, fate: refused, problem: "the topic does not take records of this time", remedy: "set message.timestamp.type to LogAppendTime, or correct this machine's clock"},
		{code: kafkago.UnsupportedForMessageFormat, fate: refused, problem: "the topic has an old format", remedy: "make it anew"},

		{code: kafkago.TopicAuthorizationFailed, fate: refused, problem: "the user may not use the topic", remedy: acl},
		{code: kafkago.GroupAuthorizationFailed, fate: refused, problem: "the user may not use the group", remedy: acl},
		{code: kafkago.ClusterAuthorizationFailed, fate: refused, problem: "the user may not do it", remedy: acl},
		{code: kafkago.SASLAuthenticationFailed, fate: refused, problem: "the brokers do not accept user and password", remedy: "correct them, or the mechanism"},
		{code: kafkago.UnsupportedSASLMechanism, fate: refused, problem: "the brokers do not know the mechanism", remedy: "set another one"},
		{code: kafkago.UnsupportedVersion, fate: refused, problem: "the brokers do not know this version of the request", remedy: "use Kafka 4.3, with which this is tested"},
		{code: kafkago.InvalidReplicationFactor, fate: refused, problem: "there are fewer brokers than a topic is to have copies", remedy: "lower Replication: 1 for a single broker"},
		{code: kafkago.InvalidConfiguration, fate: refused, problem: "the brokers do not take the topic's settings", remedy: "make the topic by hand, with Passive"},
	}
}

// faultOf finds what is known of an error. What has no code is in doubt.
func faultOf(err error) fault {
	var code kafkago.Error
	if errors.As(err, &code) {
		for _, f := range faults() {
			if f.code == code {
				return f
			}
		}
		return fault{code: code}
	}
	if unrouted(err) {
		return fault{fate: notStored, moved: true, problem: "the topic or its leader is not known", remedy: "it is tried again"}
	}
	return fault{}
}

// unrouted reports whether a request was never sent, because nobody was known who
// would take it.
func unrouted(err error) bool {
	return errors.Is(err, protocol.ErrNoTopic) || errors.Is(err, protocol.ErrNoPartition) || errors.Is(err, protocol.ErrNoLeader)
}

// explained adds to an error what is known of it.
func explained(err error) error {
	var known *Error
	var setup *provider.SetupError
	if err == nil || errors.As(err, &known) || errors.As(err, &setup) {
		return err
	}
	if f := faultOf(err); f.problem != "" {
		return &Error{Problem: f.problem, Remedy: f.remedy, Err: err}
	}
	var code kafkago.Error
	if errors.As(err, &code) {
		return err
	}
	if broken(err) {
		return &Error{Problem: "a broker cannot be reached, or does not answer", Remedy: "check the address, the network and the broker; it is tried again", Err: err}
	}
	return err
}

// broken reports whether the connection failed, or the broker said nothing on it in
// time.
func broken(err error) bool {
	var network net.Error
	var code kafkago.Error
	return !errors.As(err, &code) && (errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, errUnsent))
}

// passes reports whether waiting may help.
func passes(err error) bool {
	f := faultOf(err)
	return f.fate == notStored || f.code != 0 && f.fate == inDoubt || broken(err)
}
