package brokers

import (
	"context"
	"fmt"
	"os"
	"time"
)

// place is what a server has to know of where it runs.
type place struct {
	dir  string // its own folder, in which it also starts
	bind string // the address to listen on
}

// spec is one server, in words that fit a process and a container alike.
type spec struct {
	name string
	port int
	// files are written into its folder before the first start, by name.
	files map[string]string
	// command is the name of the program and its arguments.
	command func(at place) []string
	// env are variables of its environment. Nil: none of its own.
	env func(at place) map[string]string
	// ready is asked again and again until it returns nil.
	ready func(ctx context.Context) error
}

// runner runs the servers of one site.
type runner interface {
	// start starts a server, also again after it ended, on what it left in its folder.
	start(ctx context.Context, s *spec) error
	// stop asks a server to end, and waits until it has.
	stop(ctx context.Context, s *spec) error
	// kill ends a server at once, and waits until it has ended.
	kill(s *spec) error
	pause(s *spec) error
	resume(s *spec) error
	// ended is closed when a server has ended; nil if nobody can tell.
	ended(s *spec) <-chan struct{}
	// log is the end of what a server said.
	log(s *spec) string
	// keep lets the servers stay up when this process ends. The site says then which
	// broker is in it, and where that is reached.
	keep(broker, address string) error
	// close kills all servers and gives folder and ports back. Again, it does nothing.
	close() error
}

// starting is how long a server may take until it is ready.
const starting = time.Minute

// between is the time between two looks at something that is waited for.
const between = 10 * time.Millisecond

// Server is a server of a broker that a test may treat badly. Its methods are for one
// goroutine at a time; Addr and Log are for many.
type Server struct {
	spec *spec
	on   runner
}

// Addr returns host:port, the same for the whole life of the server, whatever happens
// to its process.
func (s *Server) Addr() string { return local(s.spec.port) }

// Kill ends the server with SIGKILL, as a crash would, and returns when it is gone. What
// it had handed to the system stays in its folder. A server that is not running is fine.
func (s *Server) Kill() error { return s.on.kill(s.spec) }

// Stop ends the server with SIGTERM and returns when it is gone; it writes down what it
// has to before. A server that is not running is fine.
func (s *Server) Stop(ctx context.Context) error { return s.on.stop(ctx, s.spec) }

// Restart starts the server again, on the same port and in the same folder, and returns
// when it is ready. If it is running, Restart stops it before, as Stop does.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return s.start(ctx)
}

// Pause stops the server with SIGSTOP: it keeps its connections and answers nothing. It
// is an errors.ErrUnsupported on Windows.
func (s *Server) Pause() error { return s.on.pause(s.spec) }

// Resume lets a paused server go on.
func (s *Server) Resume() error { return s.on.resume(s.spec) }

// Log returns the end of what the server said, for the message of a failed test.
func (s *Server) Log() string { return s.on.log(s.spec) }

// start returns when the server is ready, or says why it is not, with its own words.
func (s *Server) start(ctx context.Context) error {
	if err := s.on.start(ctx, s.spec); err != nil {
		return fmt.Errorf("start %s: %w", s.spec.name, err)
	}
	err := until(ctx, starting, func(ctx context.Context) error {
		select {
		case <-s.on.ended(s.spec):
			return final{fmt.Errorf("it ended before it was ready")}
		default:
			return s.spec.ready(ctx)
		}
	})
	if err != nil {
		return fmt.Errorf("start %s on port %d: %w\n%s", s.spec.name, s.spec.port, err, s.Log())
	}
	return nil
}

// final is an error after which waiting is pointless.
type final struct{ error }

// until asks again and again, until the answer is nil or final, or the time is over.
func until(ctx context.Context, within time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not within %v", within))
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if end, ok := err.(final); ok {
			return end.error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(between):
		}
	}
}

// tail returns the last lines of a file.
func tail(path string) string {
	const most = 4096
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("(its log cannot be read: %v)", err)
	}
	return string(content[max(0, len(content)-most):])
}
