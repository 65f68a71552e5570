package backstage

import (
	"cmp"
	"fmt"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// check returns what the provider lacks for a task, or for one job of it.
func (b broker) check(need Needs) []error {
	if !need.Delay && !need.Dedupe && !need.Order {
		return nil
	}
	var missing []error
	lack := func(capability, what, remedy string) {
		missing = append(missing, &MissingError{Provider: b.Name, Capability: capability, Need: what + " of task " + need.Task, Remedy: remedy})
	}
	if need.Delay && b.Delays == nil {
		lack("Delays", "delayed jobs", b.lendRemedy())
	}
	if need.Dedupe && b.Claims == nil {
		lack("Claims", "dedupe keys", b.lendRemedy())
	}
	switch facts := b.Jobs.Facts(); {
	case !need.Order:
	case !facts.Ordered:
		lack("order per key", "ordering keys", "run the task on a provider that keeps order, or remove its ordering_key")
	case b.delaysLent() && facts.Retries == provider.RetriesNone:
		lack("order per key while its Delays are lent", "ordering keys", "use its own Delays, or remove the task's ordering_key")
	}
	return missing
}

// tooLong returns what the provider lacks for a delay.
func (b broker) tooLong(need Needs, delay time.Duration) error {
	longest := b.longest()
	if delay <= longest {
		return nil
	}
	return &MissingError{Provider: b.Name, Capability: fmt.Sprintf("delays beyond %v", longest),
		Need: fmt.Sprintf("jobs of task %s in %v", need.Task, delay), Remedy: b.lendRemedy()}
}

// longest is the longest delay that can be kept.
func (b broker) longest() time.Duration {
	if b.Delays == nil {
		return maxDelay
	}
	return cmp.Or(b.Delays.Facts().Longest, maxDelay)
}

func (b broker) lendRemedy() string {
	return fmt.Sprintf("lend it some from a store that has them: p.Delays, p.Claims = store.Lend(%q)", b.Name)
}
