package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// group makes the requests of one member of the consumer group. A request takes at most
// as long as its context; joining waits for the other members.
type group struct {
	client  *kafkago.Client // without a timeout of its own
	id      string
	session time.Duration
	answer  time.Duration // how long a broker may take to answer
	prompt  time.Duration // the same for heartbeats and commits: much less than a session
}

// membership is what a member is known by to the group's coordinator, which refuses the
// requests of one that is no longer so.
type membership struct {
	id         string
	generation int
}

// spot is one partition of a topic.
type spot struct {
	topic  string
	number int
}

const (
	groupType = "consumer"
	// groupProtocol names what members tell each other. One that tells something else
	// has another name, so that the coordinator keeps the two apart.
	groupProtocol = "backstage-1"
)

// brought is what a member tells of itself beside its topics and partitions.
type brought struct {
	// Generation is the last in which its partitions were given to it.
	Generation int `json:"generation"`
}

// granted is what the leader tells a member beside its partitions.
type granted struct {
	// Give says how many partitions of a topic others should have instead.
	Give map[string]int `json:"give,omitempty"`
	// Partitions says how many a topic had.
	Partitions map[string]int `json:"partitions"`
}

// joined is what a member learns by joining.
type joined struct {
	membership
	claims []claim // of all members, for the leader alone
}

// join takes part in the next generation, with what the member has in this one.
func (g *group) join(ctx context.Context, id string, c claim) (joined, error) {
	told, err := json.Marshal(brought{Generation: c.generation})
	if err != nil {
		return joined{}, err
	}
	// All members have a session's time to join, which is also how long a dead one may
	// keep the others waiting.
	ctx, cancel := context.WithTimeout(ctx, g.session+g.answer)
	defer cancel()
	r, err := g.client.JoinGroup(ctx, &kafkago.JoinGroupRequest{
		GroupID: g.id, MemberID: id, ProtocolType: groupType,
		SessionTimeout: g.session, RebalanceTimeout: g.session,
		Protocols: []kafkago.GroupProtocol{{Name: groupProtocol, Metadata: kafkago.GroupProtocolSubscription{
			Topics: c.topics, OwnedPartitions: c.owned, UserData: told}}},
	})
	if err != nil {
		return joined{}, err
	}
	j := joined{membership: membership{id: r.MemberID, generation: r.GenerationID}}
	if r.Error != nil {
		return j, r.Error
	}
	for _, m := range r.Members {
		var b brought
		if err := json.Unmarshal(m.Metadata.UserData, &b); err != nil {
			return j, fmt.Errorf("member %s of group %s is no worker of Backstage: %w", m.ID, g.id, err)
		}
		j.claims = append(j.claims, claim{member: m.ID, topics: m.Metadata.Topics, owned: m.Metadata.OwnedPartitions, generation: b.Generation})
	}
	return j, nil
}

// sync tells the others what they have, if this member leads, and returns what it has
// itself.
func (g *group) sync(ctx context.Context, m membership, shares map[string]*share, partitions map[string]int) (map[string][]int, granted, error) {
	request := &kafkago.SyncGroupRequest{GroupID: g.id, GenerationID: m.generation, MemberID: m.id,
		ProtocolType: groupType, ProtocolName: groupProtocol}
	for member, s := range shares {
		told, err := json.Marshal(granted{Give: s.give, Partitions: partitions})
		if err != nil {
			return nil, granted{}, err
		}
		request.Assignments = append(request.Assignments, kafkago.SyncGroupRequestAssignment{
			MemberID: member, Assignment: kafkago.GroupProtocolAssignment{AssignedPartitions: s.owned, UserData: told}})
	}
	ctx, cancel := context.WithTimeout(ctx, g.session+g.answer)
	defer cancel()
	r, err := g.client.SyncGroup(ctx, request)
	if err := errors.Join(err, errorIn(r)); err != nil {
		return nil, granted{}, err
	}
	var told granted
	if err := json.Unmarshal(r.Assignment.UserData, &told); err != nil {
		return nil, granted{}, fmt.Errorf("what the leader of group %s assigned: %w", g.id, err)
	}
	return r.Assignment.AssignedPartitions, told, nil
}

func errorIn(r *kafkago.SyncGroupResponse) error {
	if r == nil {
		return nil
	}
	return r.Error
}

// beat tells the coordinator that the member lives.
func (g *group) beat(ctx context.Context, m membership) error {
	ctx, cancel := context.WithTimeout(ctx, g.prompt)
	defer cancel()
	answer, err := g.client.Transport.RoundTrip(ctx, g.client.Addr, &beat{group: g.id, membership: m})
	if err != nil {
		return err
	}
	if code := answer.(*beat).code; code != 0 {
		return code
	}
	return nil
}

// leave tells the coordinator not to wait for the member's silence.
func (g *group) leave(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, g.answer)
	defer cancel()
	r, err := g.client.LeaveGroup(ctx, &kafkago.LeaveGroupRequest{GroupID: g.id, Members: []kafkago.LeaveGroupRequestMember{{ID: id}}})
	if err != nil {
		return err
	}
	return r.Error
}

// position is what the group has on record of one partition.
type position struct {
	offset   int64 // -1: nothing
	metadata string
}

// positions asks what the group has on record.
func (g *group) positions(ctx context.Context, topic string, numbers ...int) (map[int]position, error) {
	ctx, cancel := context.WithTimeout(ctx, g.answer)
	defer cancel()
	r, err := g.client.OffsetFetch(ctx, &kafkago.OffsetFetchRequest{GroupID: g.id, Topics: map[string][]int{topic: numbers}})
	if err != nil {
		return nil, err
	}
	if r.Error != nil {
		return nil, r.Error
	}
	at := make(map[int]position, len(numbers))
	for _, p := range r.Topics[topic] {
		if p.Error != nil {
			return nil, p.Error
		}
		at[p.Partition] = position{offset: p.CommittedOffset, metadata: p.Metadata}
	}
	return at, nil
}

// commit puts positions on record, as a member of a generation. It returns an error for
// each that is not known to be so.
func (g *group) commit(ctx context.Context, m membership, positions map[spot]position) map[spot]error {
	request := &kafkago.OffsetCommitRequest{GroupID: g.id, GenerationID: m.generation, MemberID: m.id, Topics: make(map[string][]kafkago.OffsetCommit)}
	for at, p := range positions {
		request.Topics[at.topic] = append(request.Topics[at.topic], kafkago.OffsetCommit{Partition: at.number, Offset: p.offset, Metadata: p.metadata})
	}
	ctx, cancel := context.WithTimeout(ctx, g.prompt)
	defer cancel()
	r, err := g.client.OffsetCommit(ctx, request)
	errs := make(map[spot]error, len(positions))
	for at := range positions {
		errs[at] = err
		if err == nil {
			errs[at] = errors.New("the broker said nothing about it")
		}
	}
	if err != nil {
		return errs
	}
	for topic, answers := range r.Topics {
		for _, a := range answers {
			errs[spot{topic, a.Partition}] = a.Error
		}
	}
	return errs
}
