package brokers

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards TCP connections to a server, and spoils them when it is told to. All
// methods may be called at any time by anyone.
type Proxy struct {
	target   string
	listener net.Listener
	group    sync.WaitGroup // of all goroutines

	mu       sync.Mutex
	closed   bool
	links    map[*link]bool
	delay    time.Duration
	requests gate // from clients to the server
	replies  gate // from the server to clients
}

// NewProxy starts a proxy for a server at host:port. Whoever starts it closes it.
func NewProxy(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy for %s: %w", target, err)
	}
	p := &Proxy{target: target, listener: listener, links: make(map[*link]bool), requests: newGate(), replies: newGate()}
	p.requests.open()
	p.replies.open()
	p.group.Go(p.accept)
	return p, nil
}

// StartProxy starts a proxy for a test, which ends with it.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := NewProxy(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Addr returns the host:port to connect to in place of the server's.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Blackhole stops forwarding, both ways: connections stay open, new ones are accepted,
// and nobody hears anything more. What is sent meanwhile arrives after Resume, as it
// would after a network came back.
func (p *Proxy) Blackhole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests.shut()
	p.replies.shut()
}

// BlackholeReplies stops forwarding what the server says: it goes on doing what it is
// asked for, and nobody learns of it.
func (p *Proxy) BlackholeReplies() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replies.shut()
}

// Delay makes all that arrives from now on arrive so much later, each way. Order and
// throughput stay as they are.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Resume forwards again what was held back and, without a delay, what comes now.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = 0
	p.requests.open()
	p.replies.open()
}

// Cut resets all connections that are open, and loses what was under way in them. New
// ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// Close cuts all connections, takes no more, and returns when nothing of the proxy runs.
// Closing twice is fine.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.group.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client is gone already
		}
		l := &link{proxy: p, client: client, ended: make(chan struct{})}
		p.mu.Lock()
		if p.closed {
			l.cut()
		}
		p.links[l] = true
		p.mu.Unlock()
		p.group.Go(l.serve)
	}
}

// link is one connection, from a client to the server.
type link struct {
	proxy  *Proxy
	client net.Conn

	mu     sync.Mutex
	server net.Conn // nil until it is dialed
	cutOff bool
	ended  chan struct{} // closed by cut
}

// cut ends both connections at once. Cutting twice is fine.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cutOff {
		return
	}
	l.cutOff = true
	close(l.ended)
	for _, conn := range []net.Conn{l.client, l.server} {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not a polite end
			_ = tcp.Close()
		}
	}
}

func (l *link) serve() {
	p := l.proxy
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	}()
	defer l.cut()
	// Whether the server is there must not show while nothing is forwarded.
	if !p.requests.pass(&p.mu, l.ended) || !l.dial() {
		return
	}
	var ways sync.WaitGroup
	ways.Go(func() { l.forward(l.client, l.server, &p.requests) })
	ways.Go(func() { l.forward(l.server, l.client, &p.replies) })
	ways.Wait()
}

func (l *link) dial() bool {
	server, err := net.Dial("tcp", l.proxy.target)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cutOff {
		_ = server.Close()
		return false
	}
	l.server = server
	return true
}

// chunk is what was read at once, and when it is to arrive.
type chunk struct {
	data []byte
	due  time.Time
}

// forward copies one way, through a queue, so that a delay holds nothing up.
func (l *link) forward(from, to net.Conn, through *gate) {
	queue := make(chan chunk, 64)
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() { l.read(from, queue) })
	for c := range queue {
		if !l.wait(c.due) || !through.pass(&l.proxy.mu, l.ended) {
			return
		}
		if _, err := to.Write(c.data); err != nil {
			l.cut()
			return
		}
	}
	// The other way may go on: one side has said all that it had to say.
	if through.pass(&l.proxy.mu, l.ended) {
		_ = to.(*net.TCPConn).CloseWrite()
	}
}

func (l *link) read(from net.Conn, queue chan<- chunk) {
	defer close(queue)
	for {
		buffer := make([]byte, 16<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			l.proxy.mu.Lock()
			due := time.Now().Add(l.proxy.delay)
			l.proxy.mu.Unlock()
			select {
			case queue <- chunk{buffer[:n], due}:
			case <-l.ended:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait returns false if the link is cut before the time has come.
func (l *link) wait(due time.Time) bool {
	select {
	case <-time.After(time.Until(due)):
		return true
	case <-l.ended:
		return false
	}
}

// gate lets through what it is given while it is open. Its proxy's lock guards it.
type gate struct {
	opened chan struct{} // closed while the gate is open
	isOpen bool
}

func newGate() gate { return gate{opened: make(chan struct{})} }

func (g *gate) open() {
	if !g.isOpen {
		g.isOpen = true
		close(g.opened)
	}
}

func (g *gate) shut() {
	if g.isOpen {
		g.isOpen, g.opened = false, make(chan struct{})
	}
}

// pass waits until the gate is open; false says that the link was cut meanwhile.
func (g *gate) pass(mu *sync.Mutex, cut <-chan struct{}) bool {
	for {
		mu.Lock()
		opened, isOpen := g.opened, g.isOpen
		mu.Unlock()
		if isOpen {
			return true
		}
		select {
		case <-opened:
		case <-cut:
			return false
		}
	}
}
