package providers

import (
	"context"

	"github.com/backstage-go/backstage/providers/redisstreams"
	"github.com/backstage-go/backstage/runtime/provider"
)

// openRedis opens a redis or rediss URL. What is no setting of ours is the client's.
func openRedis(ctx context.Context, a *address) (*provider.Provider, error) {
	config := redisstreams.Config{
		Namespace:    a.take("namespace"),
		WaitReplicas: a.number("wait_replicas"),
		WaitTimeout:  a.duration("wait_timeout"),
		MaxDead:      a.number("max_dead"),
		Bounds:       a.bounds(),
	}
	if a.choice("tags", "namespace", "queue") {
		config.Tags = redisstreams.TagQueue
	}
	if a.wrong != nil {
		return nil, a.wrong
	}
	at := *a.url
	at.RawQuery = a.settings.Encode()
	config.URL = at.String()
	return redisstreams.Open(ctx, config)
}
