package redisstreams

import (
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Config says which Redis is used and how. The zero value is the server at
// localhost:6379.
type Config struct {
	// Client is a client whose settings are used: a *redis.Client (a failover
	// client is one too) or a *redis.ClusterClient. Connections of the provider's
	// own are made from them, because blocking reads would hold up others, and
	// because a client that sends a command again after an error stores a job
	// twice. So hooks, retries, timeouts and RESP version of Client do not apply.
	// It is not closed, and a failover client must stay open as long as the
	// provider, which asks its sentinels. Defaults to what URL or Options say.
	Client redis.UniversalClient
	// Options are the settings in the place of Client, as NewUniversalClient takes
	// them. Defaults to what URL says.
	Options *redis.UniversalOptions
	// URL is an address in the place of both, in the forms of go-redis:
	//
	//	redis://user:password@host:6379/0                                one server
	//	rediss://host:6380                                               with TLS
	//	redis://host:7000?addr=host2:7001&addr=host3:7002                a cluster, by some of its nodes
	//	redis://host:7000?cluster=true                                   a cluster, by one node
	//	redis://sentinel:26379?master_name=main&addr=sentinel2:26379     whatever sentinels call the master
	//
	// Defaults to redis://localhost:6379.
	URL string

	// Namespace is the first word of all keys: who uses the same one shares jobs. It
	// has no braces, slashes and tildes. Defaults to "backstage".
	Namespace string
	// Tags says which keys share a hash slot. All who use a namespace must agree.
	// Defaults to TagNamespace.
	Tags Tags

	// WaitReplicas is how many replicas must have what is written before it is taken
	// for stored. Fewer within WaitTimeout are an outcome that is not known, never a
	// success. Defaults to none: the master's word is enough.
	WaitReplicas int
	// WaitTimeout is how long they are waited for. Defaults to a second.
	WaitTimeout time.Duration

	// Bounds limits queues: the most unsettled jobs each may have, whether they
	// wait, run, or are held. A bound is stored with its queue and binds every
	// process; a queue that is not named here keeps the bound it has, and 0 lifts
	// it. A full queue holds back clients only: Publish waits for room until its
	// context ends, and refuses the rest with provider.ErrQueueFull. Next jobs,
	// retries, jobs that are due and replays pass. Defaults to no change.
	Bounds map[string]int
	// MaxDead is the most dead letters of a queue to which this process adds one.
	// Then DeadLetter returns provider.ErrDeadFull and settles nothing. Defaults to
	// no limit.
	MaxDead int

	// PromotionLease is how long a due job is reserved for one promoter that
	// publishes it elsewhere (see Provider.Lend). A promoter that died delays its
	// jobs by as much. Defaults to 15 seconds.
	PromotionLease time.Duration
	// Timeout is how long Redis may take to accept a connection or to answer.
	// Afterwards what became of a command is not known, and its connection is given
	// up. Defaults to 3 seconds.
	Timeout time.Duration
}

// Tags says which keys share a hash slot, and so a node of a cluster.
type Tags int

const (
	// TagNamespace puts all keys of a namespace into one slot, so that a job and its
	// next jobs, whatever their queues, change in one step. One node of a cluster
	// does the work of the namespace.
	TagNamespace Tags = iota
	// TagQueue gives each queue a slot, and so spreads a namespace over a cluster.
	// Next jobs in other queues are then stored before the job ends and not in the
	// same step, claims are a step of their own, and each queue costs a worker up to
	// two connections, and three commands a second while it is idle.
	TagQueue
)

// String returns the name in words.
func (t Tags) String() string {
	switch t {
	case TagNamespace:
		return "namespace"
	case TagQueue:
		return "queue"
	default:
		return fmt.Sprintf("tags %d", int(t))
	}
}

const name = "redisstreams"

// checked returns the configuration with its defaults, or what is wrong with it.
func (c Config) checked() (Config, error) {
	if c.Namespace == "" {
		c.Namespace = "backstage"
	}
	for _, d := range []struct {
		of    *time.Duration
		title string
		usual time.Duration
	}{
		{&c.WaitTimeout, "WaitTimeout", time.Second},
		{&c.PromotionLease, "PromotionLease", 15 * time.Second},
		{&c.Timeout, "Timeout", 3 * time.Second},
	} {
		if *d.of == 0 {
			*d.of = d.usual
		}
		if *d.of < time.Millisecond {
			return c, setupError(fmt.Sprintf("%s is %v", d.title, *d.of), fmt.Sprintf("leave it zero for %v", d.usual))
		}
	}
	given := 0
	for _, is := range []bool{c.Client != nil, c.Options != nil, c.URL != ""} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return c, setupError("Client, Options and URL are ways to say the same", "set one of them")
	case strings.ContainsAny(c.Namespace, "{}/~"):
		return c, setupError(fmt.Sprintf("the namespace is %q", c.Namespace), "choose one without braces, slashes and tildes, which the names of keys are built with")
	case c.Tags != TagNamespace && c.Tags != TagQueue:
		return c, setupError(c.Tags.String()+" is no way to tag keys", "use TagNamespace or TagQueue")
	case c.WaitReplicas < 0:
		return c, setupError(fmt.Sprintf("WaitReplicas is %d", c.WaitReplicas), "set it to 0 or more")
	case c.MaxDead < 0:
		return c, setupError(fmt.Sprintf("MaxDead is %d", c.MaxDead), "set it to 0 (no limit) or more")
	}
	for queue, bound := range c.Bounds {
		if queue == "" || bound < 0 {
			return c, setupError(fmt.Sprintf("Bounds has %d for queue %q", bound, queue), "name the queue, and use 0 to lift its bound")
		}
	}
	return c, nil
}

func setupError(problem, remedy string) error {
	return &provider.SetupError{Provider: name, Problem: problem, Remedy: remedy}
}

// internals are what only this package's tests can set.
type internals struct {
	hook   func(point string) // called at each point at which a process may be killed
	silent time.Duration      // how long a consumer that has nothing is silent, to be taken for dead
}
