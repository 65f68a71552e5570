package embedded

import (
	"fmt"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Config says how a file is opened. The zero value works.
type Config struct {
	// Synchronous says what a nil error is worth when the power fails. Each
	// process decides for its own writes. Defaults to Full.
	Synchronous Synchronous
	// Bounds limits queues: the most unsettled jobs each may have, whether they
	// wait, run, are held, or stand behind another of their ordering key. A bound
	// is stored with its queue and binds every process; a queue that is not named
	// here keeps the bound it has, and 0 lifts it. A full queue holds back clients
	// only: Publish waits for room until its context ends, and refuses the rest
	// with provider.ErrQueueFull. Next jobs, retries, jobs that are due and replays
	// pass. Defaults to no change.
	Bounds map[string]int
	// MaxDead is the most dead letters that the file keeps. Then DeadLetter returns
	// provider.ErrDeadFull and settles nothing. It is stored with the file and binds
	// every process; -1 removes it. Defaults to leaving it as it is: at first there
	// is none.
	MaxDead int
	// PromotionLease is how long a due job is reserved for one promoter that
	// publishes it elsewhere (see Provider.Lend). A promoter that died delays its
	// jobs by as much. Defaults to 15 seconds.
	PromotionLease time.Duration
	// OpenWait bounds how long Open waits for a process that is writing to the
	// file. Defaults to 10 seconds.
	OpenWait time.Duration
}

// Synchronous says what a transaction waits for before it is answered.
type Synchronous int

const (
	// Full waits until the disk has it: what was answered survives a power cut.
	Full Synchronous = iota
	// Normal leaves the last moments to the operating system: what was answered
	// survives the death of every process, and a power cut may take the newest
	// of it, as a whole, but never damages the file.
	Normal
)

// String returns the mode in a word.
func (s Synchronous) String() string {
	switch s {
	case Full:
		return "full"
	case Normal:
		return "normal"
	default:
		return fmt.Sprintf("synchronous %d", int(s))
	}
}

// checked returns the configuration with its defaults, or what is wrong with it.
func (c Config) checked() (Config, error) {
	if c.PromotionLease == 0 {
		c.PromotionLease = 15 * time.Second
	}
	if c.OpenWait == 0 {
		c.OpenWait = 10 * time.Second
	}
	switch {
	case c.Synchronous != Full && c.Synchronous != Normal:
		return c, setupError(c.Synchronous.String()+" is not a mode", "use embedded.Full or embedded.Normal")
	case c.PromotionLease < 0:
		return c, setupError("PromotionLease is negative", "leave it zero for 15 seconds")
	case c.OpenWait < 0:
		return c, setupError("OpenWait is negative", "leave it zero for 10 seconds")
	case c.MaxDead < -1:
		return c, setupError(fmt.Sprintf("MaxDead is %d", c.MaxDead), "set it to 0 (as it is), -1 (none) or more")
	}
	for queue, bound := range c.Bounds {
		if queue == "" || bound < 0 {
			return c, setupError(fmt.Sprintf("Bounds has %d for queue %q", bound, queue), "name the queue, and use 0 to lift its bound")
		}
	}
	return c, nil
}

func setupError(problem, remedy string) error {
	return &provider.SetupError{Provider: name, Problem: problem, Remedy: remedy}
}

// internals are what only this package's tests can set.
type internals struct {
	hook     func(point string) // called at each kill point
	now      func() int64       // the store's clock, in nanoseconds since 1970
	maxPages int64              // the most pages that the file may have
	params   string             // more parameters of the file's URI
	polling  bool               // wake up as systems without inotify do
	noWaker  error              // why processes cannot wake each other

	lookEvery time.Duration // how often a receiver that waits looks by itself, in place of takeoverEvery
}
