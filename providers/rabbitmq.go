package providers

import (
	"context"
	"net/url"
	"time"

	"github.com/backstage-go/backstage/providers/rabbitmq"
	"github.com/backstage-go/backstage/runtime/provider"
)

// openRabbitMQ opens an amqp or amqps URL. What is no setting of ours is the client's.
func openRabbitMQ(ctx context.Context, s *reader) (*provider.Provider, error) {
	at, err := url.Parse(s.address)
	if err != nil {
		return nil, err
	}
	nodes := s.settings["node"]
	s.settings.Del("node")
	config := rabbitmq.Config{
		Prefix:          s.take("prefix"),
		Management:      s.take("management"),
		Passive:         s.choice("passive", "false", "true"),
		NoLadder:        s.choice("ladder", "on", "off"),
		ConsumerTimeout: s.duration("consumer_timeout"),
	}
	theirs := make(url.Values)
	for _, name := range []string{"certfile", "keyfile", "cacertfile", "server_name_indication", "auth_mechanism", "connection_timeout", "channel_max"} {
		if values := s.settings[name]; len(values) > 0 {
			theirs[name] = values
			s.settings.Del(name)
		}
	}
	if err := s.done(); err != nil {
		return nil, err
	}
	at.RawQuery = theirs.Encode()
	config.URL = at.String()
	for _, host := range nodes {
		other := *at
		other.Host = host
		config.Others = append(config.Others, other.String())
	}
	return rabbitmq.Open(ctx, config)
}

// choice takes a setting with two values, and reports whether it is the second.
func (s *reader) choice(name, usual, other string) bool {
	value := s.take(name)
	if value != "" && value != usual && value != other {
		s.wrong(name, value, usual+" or "+other)
	}
	return value == other
}

// duration takes a setting that is a time, "45m".
func (s *reader) duration(name string) time.Duration {
	value := s.take(name)
	if value == "" {
		return 0
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		s.wrong(name, value, "a time such as 45m")
	}
	return d
}
