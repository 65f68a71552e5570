//go:build unix

package embedded

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// TestNothingIsStoredInAFileThatIsNoLongerInItsPlace: jobs in it would be seen by
// nobody.
func TestNothingIsStoredInAFileThatIsNoLongerInItsPlace(t *testing.T) {
	t.Parallel()
	for name, displace := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			if err := os.WriteFile(path+".other", nil, 0o600); err != nil {
				return err
			}
			return os.Rename(path+".other", path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "jobs.db")
			p, err := Open(path, Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close(context.Background()) }) // it cannot tidy up what is gone
			sub, err := p.Jobs.Subscribe(t.Context(), provider.SubscribeOptions{Worker: "w", Lanes: []provider.Lane{{Queue: "q", Slots: 1}}, Lease: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			job := provider.Job{ID: "a", Task: "t", Queue: "other"}
			if s := p.Jobs.Publish(t.Context(), []provider.Job{job}, provider.PublishOptions{}); s[0].Outcome != provider.OutcomeStored {
				t.Fatalf("before: %+v", s[0])
			}
			if err := displace(path); err != nil {
				t.Fatal(err)
			}
			const want = "removed or replaced"
			if s := p.Jobs.Publish(t.Context(), []provider.Job{job}, provider.PublishOptions{}); s[0].Outcome != provider.OutcomeRefused || !strings.Contains(s[0].Err.Error(), want) {
				t.Errorf("publish: %+v, want it refused because the file was %s", s[0], want)
			}
			if err := p.Health(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("health = %v, want that the file was %s", err, want)
			}
			if _, err := sub.Receive(t.Context(), []string{"q"}, 1); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("receive = %v, want it to fail for good", err)
			}
		})
	}
}
