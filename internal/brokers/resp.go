package brokers

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// replyError is what a Redis server answered in place of a result.
type replyError string

func (e replyError) Error() string { return string(e) }

// ask sends one command to a Redis server over a connection of its own. The reply is a
// string, an int64, nil or []any; the server's own error is a replyError. The client
// library is not used here, because it is under test wherever these servers are.
func ask(ctx context.Context, address string, secure *tls.Config, words ...string) (any, error) {
	var dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = &net.Dialer{}
	if secure != nil {
		dialer = &tls.Dialer{Config: secure}
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var request strings.Builder
	fmt.Fprintf(&request, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(conn, request.String()); err != nil {
		return nil, err
	}
	return reply(bufio.NewReader(conn))
}

func reply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, fmt.Errorf("an empty line is no reply of Redis")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, replyError(rest)
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '$':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return nil, err
		}
		body := make([]byte, n+len("\r\n"))
		if _, err := io.ReadFull(r, body); err != nil {
			return nil, err
		}
		return string(body[:n]), nil
	case '*':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return nil, err
		}
		items := make([]any, n)
		for i := range items {
			if items[i], err = reply(r); err != nil {
				return nil, err
			}
		}
		return items, nil
	}
	return nil, fmt.Errorf("%q is no reply of Redis", line)
}

// text asks for a reply that is a text, such as that of INFO.
func text(ctx context.Context, address string, secure *tls.Config, words ...string) (string, error) {
	answer, err := ask(ctx, address, secure, words...)
	if err != nil {
		return "", err
	}
	s, ok := answer.(string)
	if !ok {
		return "", fmt.Errorf("%s: the reply is %T, not a text", strings.Join(words, " "), answer)
	}
	return s, nil
}
