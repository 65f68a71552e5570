package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// connection is one connection to the broker, from its making to its end. It is
// never mended: recovery of the client's own would let a settlement of a job before
// an outage acknowledge another one after it.
type connection struct {
	*amqp.Connection
	wire      *wire
	heartbeat time.Duration // as agreed with the broker

	closed chan struct{} // closed when the connection has ended
	why    error         // read after closed
}

// connect makes a connection to a node.
func connect(ctx context.Context, cfg *Config, in *internals, at, title string, heartbeat time.Duration) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	var w *wire
	stop := func() bool { return true }
	properties := amqp.NewConnectionProperties()
	properties["product"] = "Backstage"
	properties.SetClientConnectionName(title)
	var dialer net.Dialer
	conn, err := amqp.DialConfig(at, amqp.Config{
		Heartbeat: heartbeat, Properties: properties, TLSClientConfig: clone(cfg.TLS),
		Dial: func(network, address string) (net.Conn, error) {
			raw, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			if deadline, ok := ctx.Deadline(); ok {
				_ = raw.SetDeadline(deadline) // the client removes it when the connection is open
			}
			w = newWire(raw, in.plain)
			stop = context.AfterFunc(ctx, func() { w.fail(ctx.Err()) })
			return w, nil
		},
	})
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		if w != nil {
			w.fail(err)
		}
		return nil, explained(err)
	}
	c := &connection{Connection: conn, wire: w, heartbeat: conn.Config.Heartbeat, closed: make(chan struct{})}
	ends := conn.NotifyClose(make(chan *amqp.Error, 1))
	go func() {
		defer close(c.closed)
		if e := <-ends; e != nil {
			c.why = explained(e)
		} else {
			c.why = errEnded
		}
	}()
	return c, nil
}

// errEnded is why a connection ended that nobody else ended.
var errEnded = errors.New("the connection was closed")

func clone(c *tls.Config) *tls.Config {
	if c == nil {
		return nil
	}
	return c.Clone()
}

// over reports whether the connection has ended.
func (c *connection) over() bool {
	select {
	case <-c.closed:
		return true
	default:
		return c.IsClosed()
	}
}

// close says goodbye, at most until ctx ends.
func (c *connection) close(ctx context.Context) {
	deadline, ok := ctx.Deadline()
	if most := time.Now().Add(farewell); !ok || most.Before(deadline) {
		deadline = most
	}
	_ = c.CloseDeadline(deadline)
	c.wire.fail(net.ErrClosed)
}

// farewell is how long the broker may take to answer a goodbye.
const farewell = 5 * time.Second

// doubtful reports whether the broker has been silent for longer than one that is
// alive: it says something every half heartbeat.
func (c *connection) doubtful() bool {
	return c.heartbeat > 0 && c.wire.silent() > c.heartbeat+c.heartbeat/2
}

// silence is an error that says so.
func (c *connection) silence() error {
	return fmt.Errorf("the broker has not been heard for %v", c.wire.silent().Round(time.Millisecond))
}
