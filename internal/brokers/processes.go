package brokers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// processes runs the servers of a site with a program that is installed.
type processes struct {
	site  *site
	watch *watcher

	mu      sync.Mutex
	running map[string]*process // by the server's name
}

// vacating is how long a port may take to be free.
const vacating = 5 * time.Second

type process struct {
	identity
	done chan struct{} // closed when it has ended and is off the record
}

// newProcesses takes the site over.
func newProcesses(s *site) (*processes, error) {
	w, err := watch(s.dir)
	if err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return &processes{site: s, watch: w, running: make(map[string]*process)}, nil
}

func (p *processes) dir(s *spec) string { return filepath.Join(p.site.dir, s.name) }

func (p *processes) logFile(s *spec) string { return p.dir(s) + ".log" }

func (p *processes) start(ctx context.Context, s *spec) error {
	if err := p.prepare(s); err != nil {
		return err
	}
	// What a server started, and was killed with it, may end a moment after it.
	if err := until(ctx, vacating, func(context.Context) error {
		if !free(s.port) {
			return fmt.Errorf("somebody else has taken port %d", s.port)
		}
		return nil
	}); err != nil {
		return err
	}
	said, err := os.OpenFile(p.logFile(s), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer said.Close()
	words := s.command(place{dir: p.dir(s), bind: "127.0.0.1"})
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir(s), said, said
	if s.env != nil {
		cmd.Env = os.Environ()
		for name, value := range s.env(place{dir: p.dir(s), bind: "127.0.0.1"}) {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	apart(cmd)

	p.mu.Lock()
	defer p.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	started := &process{identityOf(cmd.Process.Pid), make(chan struct{})}
	p.running[s.name] = started
	noted := p.note()
	go func() {
		_ = cmd.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.running, s.name)
		_ = p.note() // a number too many is told from others by its time of birth
		close(started.done)
	}()
	if noted != nil {
		return errors.Join(noted, killAll(started.pid))
	}
	return nil
}

// prepare makes the folder of a server, once.
func (p *processes) prepare(s *spec) error {
	if err := os.Mkdir(p.dir(s), 0o700); errors.Is(err, os.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	for name, content := range s.files {
		if err := os.WriteFile(filepath.Join(p.dir(s), name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// note puts the running servers on record, for the watcher and for later runs. It needs
// the lock.
func (p *processes) note() error {
	var all []identity
	for _, one := range p.running {
		all = append(all, one.identity)
	}
	return errors.Join(p.watch.tell(all), record(p.site.dir, serversFile, all...))
}

// one returns the process of a server; nil if it is not running.
func (p *processes) one(s *spec) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[s.name]
}

func (p *processes) ended(s *spec) <-chan struct{} {
	if one := p.one(s); one != nil {
		return one.done
	}
	done := make(chan struct{})
	close(done)
	return done
}

func (p *processes) stop(ctx context.Context, s *spec) error {
	one := p.one(s)
	if one == nil {
		return nil
	}
	if err := terminateAll(one.pid); err != nil {
		return fmt.Errorf("stop %s: %w", s.name, err)
	}
	select {
	case <-one.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", s.name, context.Cause(ctx))
	}
}

func (p *processes) kill(s *spec) error {
	one := p.one(s)
	if one == nil {
		return nil
	}
	if err := killAll(one.pid); err != nil {
		return fmt.Errorf("kill %s: %w", s.name, err)
	}
	<-one.done
	return nil
}

func (p *processes) pause(s *spec) error { return p.signal(s, pauseAll) }

func (p *processes) resume(s *spec) error { return p.signal(s, resumeAll) }

func (p *processes) signal(s *spec, send func(pid int) error) error {
	one := p.one(s)
	if one == nil {
		return fmt.Errorf("%s is not running", s.name)
	}
	return send(one.pid)
}

func (p *processes) log(s *spec) string { return tail(p.logFile(s)) }

func (p *processes) keep(broker, address string) error {
	if err := keep(p.site.dir, broker, address); err != nil {
		return err
	}
	p.watch.dismiss()
	return nil
}

func (p *processes) close() error {
	p.mu.Lock()
	var all []*process
	for _, one := range p.running {
		all = append(all, one)
	}
	p.mu.Unlock()
	var errs []error
	for _, one := range all {
		if err := killAll(one.pid); err != nil {
			errs = append(errs, err)
			continue
		}
		<-one.done
	}
	p.watch.dismiss()
	return errors.Join(append(errs, p.site.remove())...)
}
