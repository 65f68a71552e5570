package providers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/providers"
	"github.com/backstage-go/backstage/providers/rabbitmq"
)

func TestOpenRabbitMQByAddress(t *testing.T) {
	t.Parallel()
	at := brokers.RabbitMQURL(brokers.SharedRabbitMQ(t))
	for address, delays := range map[string]bool{
		at: true,
		at + "?prefix=shop&ladder=off&consumer_timeout=45m&channel_max=100": false,
	} {
		p, err := providers.Open(t.Context(), address)
		if err != nil {
			t.Errorf("Open(%q): %v", address, err)
			continue
		}
		if p.Name != "rabbitmq" || (p.Delays != nil) != delays {
			t.Errorf("Open(%q) opens %q, with delays of its own: %t; want rabbitmq, %t", address, p.Name, p.Delays != nil, delays)
		}
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("Open(%q): close: %v", address, err)
		}
	}
}

func TestARabbitMQAddressThatIsNotUnderstoodIsAnError(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"amqp://localhost?ladder=up":           "on or off",
		"amqp://localhost?passive=yes":         "false or true",
		"amqp://localhost?consumer_timeout=45": "a time such as 45m",
		"amqp://localhost?prefx=shop":          `unknown setting "prefx"`,
		"amqp://localhost?heartbeat=3":         `unknown setting "heartbeat"`,
		"amqp://localhost?management=15672":    "management URL",
	} {
		if _, err := providers.Open(t.Context(), address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): err = %v, want one that says %q", address, err, want)
		}
	}
}

func TestARabbitMQThatIsNotThereIsAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	_, err := providers.Open(t.Context(), "amqp://127.0.0.1:1?node=127.0.0.1:2")
	var said *rabbitmq.Error
	if !errors.As(err, &said) || strings.Count(err.Error(), "connection refused") != 2 {
		t.Errorf("err = %v, want an *Error for each node", err)
	}
}
