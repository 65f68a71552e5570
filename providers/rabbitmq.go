package providers

import (
	"cmp"
	"context"
	"net/url"

	"github.com/backstage-go/backstage/providers/rabbitmq"
	"github.com/backstage-go/backstage/runtime/provider"
)

// openRabbitMQ opens an amqp or amqps URL. What is no setting of ours is the client's.
func openRabbitMQ(ctx context.Context, a *address) (*provider.Provider, error) {
	nodes := a.settings["node"]
	a.settings.Del("node")
	config := rabbitmq.Config{
		Prefix:          a.take("prefix"),
		Management:      a.take("management"),
		Passive:         a.choice("passive", "false", "true"),
		NoLadder:        a.choice("ladder", "on", "off"),
		ConsumerTimeout: a.duration("consumer_timeout"),
	}
	theirs := make(url.Values)
	for _, name := range []string{"certfile", "keyfile", "cacertfile", "server_name_indication", "auth_mechanism", "connection_timeout", "channel_max"} {
		if values := a.settings[name]; len(values) > 0 {
			theirs[name] = values
			a.settings.Del(name)
		}
	}
	at := *a.url
	at.RawQuery = theirs.Encode()
	config.URL = at.String()
	for _, host := range nodes {
		if other, err := url.Parse("//" + host); err != nil || other.Host != host {
			a.want("node", "HOST:PORT")
		}
		other := at
		other.Host = host
		config.Others = append(config.Others, other.String())
	}
	lender := a.take("lend")
	if err := a.done(); err != nil {
		return nil, err
	}
	p, err := rabbitmq.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	return borrow(ctx, p, lender, "rabbitmq-"+cmp.Or(config.Prefix, "backstage"))
}
