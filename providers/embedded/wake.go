package embedded

import "time"

// pollEvery is how often a process looks for what others wrote, where the system
// cannot tell it.
const pollEvery = 10 * time.Millisecond

// waker tells that another process may have written something worth looking for.
type waker interface {
	// poked receives after others have written. It never blocks them.
	poked() <-chan struct{}
	// wake tells the others.
	wake()
	// interval is how often to look by oneself; 0 if poked tells.
	interval() time.Duration
	// close ends it.
	close()
}

// poller is the waker of systems that cannot tell.
type poller struct{}

func (poller) poked() <-chan struct{}  { return nil }
func (poller) wake()                   {}
func (poller) interval() time.Duration { return pollEvery }
func (poller) close()                  {}
