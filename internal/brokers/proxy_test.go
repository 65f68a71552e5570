package brokers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// echo is a server that sends every line back, and remembers it.
type echo struct {
	net.Listener
	mu    sync.Mutex
	heard []string
}

func startEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{Listener: listener}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() { e.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		group.Wait()
	})
	return e
}

func (e *echo) serve(conn net.Conn) {
	defer conn.Close()
	for r := bufio.NewReader(conn); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		e.mu.Lock()
		e.heard = append(e.heard, strings.TrimSpace(line))
		e.mu.Unlock()
		if _, err := io.WriteString(conn, line); err != nil {
			return
		}
	}
}

func (e *echo) has(line string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, heard := range e.heard {
		if heard == line {
			return true
		}
	}
	return false
}

// client is a connection through a proxy.
type client struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func connect(t *testing.T, p *Proxy) *client {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatalf("connect to the proxy: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{conn, t, bufio.NewReader(conn)}
}

func (c *client) say(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		c.t.Fatalf("say %s: %v", line, err)
	}
}

func (c *client) hear(want string) {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	if got, err := c.r.ReadString('\n'); err != nil || strings.TrimSpace(got) != want {
		c.t.Fatalf("heard %q, %v; want %q", got, err, want)
	}
}

// hearNothing looks for a short time: that nothing ever comes cannot be seen.
func (c *client) hearNothing() {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if got, err := c.r.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("heard %q, %v; want nothing, and an open connection", got, err)
	}
}

func TestProxyForwards(t *testing.T) {
	t.Parallel()
	c := connect(t, StartProxy(t, startEcho(t).Addr().String()))
	c.say("hello")
	c.hear("hello")
	// One side may end first, and still hears the rest.
	c.say("last")
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.hear("last")
	if _, err := c.r.ReadByte(); err != io.EOF {
		t.Errorf("at the end: %v, want EOF", err)
	}
}

func TestBlackholeKeepsConnectionsAndForwardsNothing(t *testing.T) {
	t.Parallel()
	server := startEcho(t)
	p := StartProxy(t, server.Addr().String())
	before := connect(t, p)
	before.say("before")
	before.hear("before")
	p.Blackhole()
	during := connect(t, p)
	before.say("lost for now")
	during.say("new")
	before.hearNothing()
	during.hearNothing()
	if server.has("lost for now") || server.has("new") {
		t.Error("something reached the server through a blackhole")
	}
	p.Resume()
	before.hear("lost for now")
	during.hear("new")
}

func TestBlackholedRepliesAreOfWorkDone(t *testing.T) {
	t.Parallel()
	server := startEcho(t)
	p := StartProxy(t, server.Addr().String())
	c := connect(t, p)
	p.BlackholeReplies()
	c.say("done")
	if err := until(t.Context(), 30*time.Second, func(ctx context.Context) error {
		if !server.has("done") {
			return errors.New("the server has not heard it")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c.hearNothing()
	p.Resume()
	c.hear("done")
}

func TestCutEndsConnectionsAndTakesNewOnes(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, startEcho(t).Addr().String())
	for _, blackholed := range []bool{false, true} {
		c := connect(t, p)
		c.say("hello")
		c.hear("hello")
		if blackholed {
			p.Blackhole()
			c.say("lost for ever")
		}
		p.Cut()
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		if got, err := c.r.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("blackholed %v: after a cut: %q, %v; want a reset", blackholed, got, err)
		}
	}
	p.Resume()
	again := connect(t, p)
	again.say("again")
	again.hear("again")
}

func TestDelayHoldsEachThingUpAndNotTheNext(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, startEcho(t).Addr().String())
	c := connect(t, p)
	const delay = 50 * time.Millisecond
	p.Delay(delay)
	began := time.Now()
	c.say("late")
	c.hear("late")
	if took := time.Since(began); took < 2*delay {
		t.Errorf("there and back took %v with a delay of %v each way", took, delay)
	}
}

func TestProxyOfADeadServerEndsConnections(t *testing.T) {
	t.Parallel()
	server := startEcho(t)
	p := StartProxy(t, server.Addr().String())
	_ = server.Close()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		return // cut already
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection to a server that is gone: %v, want an end", err)
	}
}
