package server

import (
	"maps"
	"net"
	"testing"
)

func TestCommandsAreCountedHoweverTheyAreCut(t *testing.T) {
	t.Parallel()
	const text = "*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nset\r\n$0\r\n\r\n$14\r\n*1\r\n$4\r\nQUIT\r\n\r\n*1\r\n$4\r\nping\r\n"
	want := Calls{"ping": 2, "set": 1}
	for size := 1; size <= len(text); size++ {
		client, peer := net.Pipe()
		go func() {
			for buf := make([]byte, len(text)); ; {
				if _, err := peer.Read(buf); err != nil {
					return
				}
			}
		}()
		var sent Sent
		conn := &countedConn{Conn: client, sent: &sent}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := conn.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if got := sent.Take(); !maps.Equal(got, want) {
			t.Errorf("in pieces of %d bytes: counted %v, want %v", size, got, want)
		}
		_ = client.Close()
	}
}
