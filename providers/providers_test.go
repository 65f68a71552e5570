package providers_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/providers"
	"github.com/backstage-go/backstage/runtime/provider"
)

func TestOpenByAddress(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "jobs.db")
	for address, name := range map[string]string{
		"memory:":              "memory",
		"memory:?bound.mail=4": "memory",
		"embedded:" + file:     "embedded",
		"embedded:" + file + "?synchronous=normal&bound.mail=4": "embedded",
	} {
		p, err := providers.Open(t.Context(), address)
		if err != nil {
			t.Errorf("Open(%q): %v", address, err)
			continue
		}
		if p.Name != name {
			t.Errorf("Open(%q) opens %q, want %q", address, p.Name, name)
		}
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("Open(%q): close: %v", address, err)
		}
	}
}

func TestAnAddressThatIsNotUnderstoodIsAnError(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"jobs.db":                       "no scheme",
		"mysql:host":                    `unknown scheme "mysql"`,
		"mysql://user:password@host":    `unknown scheme "mysql"`,
		"user:password@host":            "no scheme",
		"embedded:":                     "names no file",
		"embedded:x.db?synchronous=off": "full or normal",
		"embedded:x.db?sync=full":       `unknown setting "sync"`,
		"memory:?bound.mail=many":       "a number of jobs",
		"embedded:x.db?bound.mail=%zz":  "settings that are not understood",
		"redis://h:1?tags=job":          "namespace or queue",
		"redis://h:1?wait_replicas=-1":  "a number, 0 or more",
		"redis://h:1?wait_timeout=1":    "a time such as",
		"redis://h:1?bound.mail=many":   "a number of jobs",
		"redis://h:1?max_dead=x":        "a number, 0 or more",
		"redis://h:1?sync=full":         "unexpected option: sync",
		"redis://h:1/one":               "invalid database number",
		"redis://h:1?namespace={}":      "without braces",
		"redis://h:1?addr=h2":           "unable to parse addr",
		"redis://h:%zz":                 "is no URL",
	} {
		if _, err := providers.Open(t.Context(), address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): err = %v, want one that says %q", address, err, want)
		}
	}
}

// TestOpenRedisByAddress opens Redis with settings of both kinds: ours, and go-redis'.
func TestOpenRedisByAddress(t *testing.T) {
	t.Parallel()
	at := brokers.SharedRedis(t)
	for i, form := range []string{
		"redis://%s?namespace=%s&bound.mail=1&max_dead=10&wait_timeout=1s",
		"redis://%s/0?namespace=%s&bound.mail=1&tags=namespace&wait_replicas=0&client_name=shop&pool_size=3&dial_timeout=2s",
	} {
		address := fmt.Sprintf(form, at, fmt.Sprintf("TestOpenRedisByAddress-%d", i))
		p, err := providers.Open(t.Context(), address)
		if err != nil {
			t.Errorf("Open(%q): %v", address, err)
			continue
		}
		if p.Name != "redisstreams" {
			t.Errorf("Open(%q) opens %q, want redisstreams", address, p.Name)
		}
		checkRoomForOne(t, p)
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("Open(%q): close: %v", address, err)
		}
	}
}

// checkRoomForOne fails the test unless the queue mail takes one job and no second.
func checkRoomForOne(t *testing.T, p *provider.Provider) {
	t.Helper()
	now := time.Now()
	job := provider.Job{ID: "1", Task: "Task", Queue: "mail", Enqueued: now, FirstDue: now}
	if first := p.Jobs.Publish(t.Context(), []provider.Job{job}, provider.PublishOptions{})[0]; first.Outcome != provider.OutcomeStored {
		t.Errorf("the first job: %+v", first)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if second := p.Jobs.Publish(ctx, []provider.Job{job}, provider.PublishOptions{})[0]; second.Outcome == provider.OutcomeStored {
		t.Errorf("the second job is stored, in a queue with room for one")
	}
}
