package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/backstage-go/backstage/providers/internal/gate"
	"github.com/backstage-go/backstage/runtime/provider"
)

const name = "embedded"

// store is one opening of a file.
type store struct {
	path    string
	opened  os.FileInfo // the file that path named then
	cfg     Config
	in      internals
	side    *sideFile
	waker   waker
	conn    *connection // the writer's
	readers *sql.DB
	writer  *writer

	provider  *provider.Provider
	delays    *delays
	claims    *claims
	promoters promoters

	calls   gate.Gate // calls that write or wait for jobs
	reading gate.Gate
	closing context.Context // ends when Close is called
	stop    context.CancelFunc
	shutOff sync.Once
}

// Open opens a file, or makes it, and returns it as a provider. Beside it lie its
// -wal and -shm files and a -lock file; all belong together. The folder must exist
// and be on a local disk. Several processes of a host may open one file, and one
// process may open it several times.
//
// It waits, for as long as Config.OpenWait says, for a process that is writing to
// the file. A file that cannot be used (of a newer version, of another program,
// damaged, on a file system without locks) is a *provider.SetupError or an *Error
// that says what to do.
//
// The provider must be closed. A process that dies without it leaves nothing to
// repair: what was not acknowledged in the file is gone, what was is there, and
// its deliveries start again elsewhere when their leases have ended.
func Open(path string, cfg Config) (*provider.Provider, error) {
	s, err := open(path, cfg, internals{})
	if err != nil {
		return nil, err
	}
	return s.provider, nil
}

func open(path string, cfg Config, in internals) (*store, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	if path, err = checkedPath(path); err != nil {
		return nil, err
	}
	if in.now == nil {
		in.now = func() int64 { return time.Now().UnixNano() }
	}
	s := &store{path: path, cfg: cfg, in: in}
	s.closing, s.stop = context.WithCancel(context.Background())
	ctx, cancel := context.WithTimeout(s.closing, cfg.OpenWait)
	defer cancel()
	if err := s.start(ctx); err != nil {
		s.shut()
		return nil, err
	}
	return s, nil
}

// start opens everything, and brings the file up to date.
func (s *store) start(ctx context.Context) error {
	var err error
	if s.side, err = openSideFile(s.path + lockSuffix); err != nil {
		return err
	}
	if err = s.openLocked(ctx); err != nil {
		return err
	}
	if s.readers, err = openReaders(s.path, s.in); err != nil {
		return err
	}
	if s.opened, err = os.Stat(s.path); err != nil {
		return err
	}
	s.assemble()
	if s.waker, err = s.newWaker(); err != nil {
		s.provider.Events.EmitEarly(provider.Event{Provider: name, Kind: provider.Degraded, Message: "processes poll for each other's jobs", Err: err})
		s.waker = poller{}
	}
	s.writer = newWriter(s)
	go s.writer.run()
	return s.setBounds(ctx)
}

func (s *store) newWaker() (waker, error) {
	if s.in.polling || s.in.noWaker != nil {
		return poller{}, s.in.noWaker
	}
	return newWaker(s.side)
}

// openLocked opens the writer's connection under the write lock.
func (s *store) openLocked(ctx context.Context) error {
	turn := turnstile{side: s.side}
	if err := turn.enter(ctx.Done(), func(time.Duration) {}); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("another process has held its write lock for %s, stopped or stuck; let it continue or end it: %w",
				s.cfg.OpenWait, ctx.Err())
		}
		return fmt.Errorf("embedded file %s: %w", s.path, err)
	}
	defer turn.leave()
	var err error
	s.conn, err = openWriter(ctx, s.path, s.cfg, s.in)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("embedded file %s: the disk took longer than %s; give Config.OpenWait more time: %w", s.path, s.cfg.OpenWait, err)
	}
	return err
}

// setBounds stores the bounds that this process was given.
func (s *store) setBounds(ctx context.Context) error {
	if len(s.cfg.Bounds) == 0 && s.cfg.MaxDead == 0 {
		return nil
	}
	return s.do(ctx, func(t *transaction) error {
		if s.cfg.MaxDead != 0 {
			t.exec("update queue set bound = ? where q = 1", max(0, s.cfg.MaxDead))
		}
		for queue, bound := range s.cfg.Bounds {
			t.exec("update queue set bound = ? where q = ?", bound, t.queue(scopeOwn, queue))
		}
		t.stir = true
		return nil
	})
}

// assemble makes the provider.
func (s *store) assemble() {
	s.delays = &delays{store: s}
	s.claims = &claims{store: s}
	s.provider = &provider.Provider{
		Name:   name,
		Jobs:   s,
		Delays: s.delays,
		Claims: s.claims,
		Stats:  &stats{s},
		Dead:   &letters{s},
		Events: new(provider.Events),
		Lend:   s.lend,
		Health: s.health,
		Close:  s.close,
	}
}

// Facts describes the file: provider.Jobs.
func (s *store) Facts() provider.JobFacts {
	return provider.JobFacts{
		Death:         provider.LeaseOnRecord,
		Confirmed:     true,
		RefusesLate:   true,
		AtomicHandoff: true,
		ExactCrashes:  true,
		Retries:       provider.RetriesAll,
		Ordered:       true,
		Durable:       true,
	}
}

// ownDelays reports whether the provider's delays are its own, perhaps with
// something around them, and not lent by another.
func (s *store) ownDelays() bool {
	d := s.provider.Delays
	return d != nil && !d.Facts().Lent
}

// ownClaims reports the same of its claims.
func (s *store) ownClaims() bool {
	c := s.provider.Claims
	return c != nil && !c.Facts().Lent
}

func (s *store) emit(e provider.Event) {
	e.Provider = name
	s.provider.Events.Emit(e)
}

// do runs an errand of a call.
func (s *store) do(ctx context.Context, run func(t *transaction) error) error {
	if !s.calls.Enter() {
		return provider.ErrClosed
	}
	defer s.calls.Leave()
	return s.writer.do(ctx, run)
}

// doFreeing is do for what only gives room back.
func (s *store) doFreeing(ctx context.Context, run func(t *transaction) error) error {
	if !s.calls.Enter() {
		return provider.ErrClosed
	}
	defer s.calls.Leave()
	return s.writer.doFreeing(ctx, run)
}

// storing runs an errand that stores something, and says whether it is stored.
func (s *store) storing(ctx context.Context, run func(t *transaction) error) (provider.Outcome, error) {
	if !s.calls.Enter() {
		return provider.OutcomeRefused, provider.ErrClosed
	}
	defer s.calls.Leave()
	fate, err := s.writer.sendKnowing(ctx, s.writer.newErrand(run))
	switch {
	case err == nil:
		return provider.OutcomeStored, nil
	case fate == fateUnknown || doubtful(err):
		return provider.OutcomeUnknown, err
	default:
		return provider.OutcomeRefused, err
	}
}

// untilClosed returns a context that also ends when the provider is closed.
func (s *store) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	within, cancel := context.WithCancel(ctx)
	forget := context.AfterFunc(s.closing, cancel)
	return within, func() { forget(); cancel() }
}

// whyEnded is nil if the caller's context has ended, and ErrClosed otherwise.
func (s *store) whyEnded(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	return provider.ErrClosed
}

// close ends the provider: provider.Provider.Close.
func (s *store) close(ctx context.Context) error {
	s.stop()
	err := s.calls.Close(ctx)
	if s.writer.finish(ctx) {
		err = errors.Join(err, s.reading.Close(ctx))
		s.shut()
		return err
	}
	return errors.Join(err, ctx.Err())
}

// shut closes what is open, once.
func (s *store) shut() {
	s.stop()
	if s.writer != nil && !s.writer.finish(s.closing) {
		return // it hangs on the disk, and what it uses stays open
	}
	s.shutOff.Do(s.closeAll)
}

// closeAll closes what is open. The writer has ended, or was never started.
func (s *store) closeAll() {
	if s.waker != nil {
		s.waker.close()
	}
	if s.readers != nil {
		_ = s.readers.Close()
	}
	if s.conn != nil {
		s.conn.close()
	}
	if s.side != nil {
		s.side.close()
	}
}
