package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// wires are the connections of this process, which the client makes and keeps. They
// are known here, because the client ends none that waits for an answer.
type wires struct {
	cfg       *Config
	news      *news
	answer    answers
	transport *kafkago.Transport
	closing   context.Context
	stop      context.CancelFunc

	left sync.WaitGroup // connections that are not closed
	mu   sync.Mutex
	open map[*wire]bool
	over bool
}

// wire is one of them.
type wire struct {
	net.Conn
	of   *wires
	once sync.Once
}

func newWires(cfg *Config, in *internals, n *news) *wires {
	w := &wires{cfg: cfg, news: n, answer: in.answer, open: make(map[*wire]bool)}
	w.closing, w.stop = context.WithCancel(context.Background())
	w.transport = &kafkago.Transport{
		Dial:        w.dial,
		DialTimeout: cfg.Timeout,
		ClientID:    "backstage",
		TLS:         cfg.TLS,
		SASL:        cfg.SASL,
		Context:     w.closing,
	}
	return w
}

// client returns the client of these connections. Each request that it makes may take
// as long as the configuration says; one that was told to wait longer at the broker
// is told half of it.
func (w *wires) client() *kafkago.Client {
	return &kafkago.Client{Addr: addresses(w.cfg.Brokers), Timeout: w.cfg.Timeout, Transport: w}
}

// RoundTrip makes a request: kafkago.RoundTripper.
func (w *wires) RoundTrip(ctx context.Context, to net.Addr, request kafkago.Request) (kafkago.Response, error) {
	if w.answer != nil {
		if answer, err := w.answer(request); answer != nil || err != nil {
			return answer, err
		}
	}
	return w.transport.RoundTrip(ctx, to, request)
}

// addresses are those of one cluster, of which the client takes any.
type addresses []string

// Network and String have a part for each address: net.Addr, as the client reads it.
func (a addresses) Network() string { return strings.Repeat("tcp,", len(a)-1) + "tcp" }
func (a addresses) String() string  { return strings.Join(a, ",") }

// dialPatience is how long a broker may take to accept a connection before it is told
// that it cannot be reached. A caller may have had less time.
const dialPatience = time.Second

// dial makes a connection.
func (w *wires) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dial := w.cfg.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	began := time.Now()
	conn, err := dial(ctx, network, address)
	if err != nil {
		if w.closing.Err() == nil && (ctx.Err() == nil || time.Since(began) >= dialPatience) {
			w.news.lost(address, err)
		}
		return nil, err
	}
	w.news.reached(address)
	c := &wire{Conn: conn, of: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	w.open[c] = true
	w.left.Add(1)
	return c, nil
}

// errUnsent is why a request did not leave this process as a whole. A broker does not
// act on a part of one.
var errUnsent = errors.New("the request was not sent")

// errHungUp is why nothing is written to a connection that was idle.
var errHungUp = errors.New("the broker has closed the connection")

// Write writes, and says of what was not written that it was not sent. What is written
// to a connection that the broker has closed would be in doubt, so it looks before.
func (c *wire) Write(p []byte) (n int, err error) {
	if err = errHungUp; !hungUp(c.Conn) {
		n, err = c.Conn.Write(p)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errUnsent, err)
	}
	return n, err
}

// Close closes the connection.
func (c *wire) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		delete(c.of.open, c)
		c.of.left.Done()
	})
	return err
}

// cut breaks all connections, whatever they wait for.
func (w *wires) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		_ = c.Conn.Close() // what uses it ends, and closes the wire
	}
}

// lastWords is how long connections may take to end that were cut.
const lastWords = time.Second

// close ends all connections, and makes none any more.
func (w *wires) close() {
	w.stop()
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	w.cut()
	w.transport.CloseIdleConnections()
	ended := make(chan struct{})
	go func() {
		w.left.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(lastWords):
	}
}
