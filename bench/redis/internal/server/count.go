package server

import (
	"context"
	"net"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Sent counts the commands that clients send, as they leave for the network: a
// script is one, whatever it does.
type Sent struct {
	mu    sync.Mutex
	calls Calls
}

// Count makes clients that are opened with these options count what they send.
func (s *Sent) Count(options *redis.Options) {
	dialer := net.Dialer{}
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn, sent: s}, nil
	}
}

// Take returns what was counted, and starts again at zero.
func (s *Sent) Take() Calls {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.calls
	s.calls = nil
	return taken
}

func (s *Sent) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = make(Calls)
	}
	s.calls[name]++
}

// countedConn reads along what is written: arrays of strings, each string after
// its length. A write may end anywhere within one.
type countedConn struct {
	net.Conn
	sent *Sent

	line   []byte // of the header under way
	skip   int    // bytes of the string under way, its end of line included
	name   []byte // of the command, as far as it has come
	naming bool   // the string under way is the name
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.read(p[:n])
	return n, err
}

func (c *countedConn) read(p []byte) {
	for len(p) > 0 {
		if c.skip == 0 {
			p = c.header(p)
			continue
		}
		n := min(c.skip, len(p))
		if c.naming {
			c.name = append(c.name, p[:n]...)
		}
		if c.skip -= n; c.skip == 0 && c.naming {
			c.sent.add(strings.ToLower(strings.TrimSpace(string(c.name))))
			c.name, c.naming = c.name[:0], false
		}
		p = p[n:]
	}
}

// header takes a header's bytes, "*3" or "$11" and their end of line.
func (c *countedConn) header(p []byte) (rest []byte) {
	for i, b := range p {
		if b != '\n' {
			c.line = append(c.line, b)
			continue
		}
		number := 0
		for _, digit := range c.line[1 : len(c.line)-1] {
			number = 10*number + int(digit-'0')
		}
		if c.line[0] == '*' {
			c.naming = true
		} else {
			c.skip = number + len("\r\n")
		}
		c.line = c.line[:0]
		return p[i+1:]
	}
	return nil
}
