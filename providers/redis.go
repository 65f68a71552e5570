package providers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/backstage-go/backstage/providers/redisstreams"
	"github.com/backstage-go/backstage/runtime/provider"
)

// openRedis opens a redis or rediss URL. What is no setting of ours is the client's.
// No error has the password.
func openRedis(ctx context.Context, s *reader) (*provider.Provider, error) {
	at, err := url.Parse(s.address)
	if err != nil {
		return nil, errors.New("the provider address is no URL; write redis://USER:PASSWORD@HOST:PORT, with special characters escaped")
	}
	s.address = at.Redacted()
	config := redisstreams.Config{
		Namespace:    s.take("namespace"),
		WaitReplicas: s.number("wait_replicas"),
		WaitTimeout:  s.duration("wait_timeout"),
		MaxDead:      s.number("max_dead"),
		Bounds:       s.bounds(),
	}
	if s.choice("tags", "namespace", "queue") {
		config.Tags = redisstreams.TagQueue
	}
	if s.err != nil {
		return nil, s.err
	}
	at.RawQuery = s.settings.Encode()
	config.URL = at.String()
	p, err := redisstreams.Open(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("provider address %q: %w", s.address, err)
	}
	return p, nil
}

// number takes a setting that counts something.
func (s *reader) number(name string) int {
	value := s.take(name)
	n, err := strconv.Atoi(value)
	if value != "" && (err != nil || n < 0) {
		s.wrong(name, value, "a number, 0 or more")
	}
	return n
}
