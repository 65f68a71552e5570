package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstage-go/backstage/runtime/provider"
)

// flaky are numbers of a broker that cannot be reached now and then.
type flaky struct {
	unknowing
	calls  int
	failed func(call int) bool
}

func (f *flaky) Queue(ctx context.Context, queue string) (provider.QueueStats, error) {
	if f.calls++; f.failed(f.calls) {
		return provider.QueueStats{}, errors.New("dial redis://shop:secret@host: connection refused")
	}
	return f.unknowing.Queue(ctx, queue)
}

// watch runs stats -watch for a time, in a bubble.
func watch(t *testing.T, stats provider.Stats, long time.Duration, words ...string) (stdout, stderr string, code int) {
	t.Helper()
	w := world{now: time.Now, getenv: func(string) string { return "odd:" }, open: func(context.Context, string) (*provider.Provider, error) {
		return &provider.Provider{Name: "odd", Stats: stats, Close: closed}, nil
	}}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var out, err bytes.Buffer
	code = program(w).Run(ctx, append([]string{"stats", "mail"}, words...), strings.NewReader(""), &out, &err)
	return out.String(), err.String(), code
}

func TestWatchDrawsAgainAndAgain(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]int{"-watch": 5, "-watch=1s": 10, "-watch=true": 5, "-watch=1m": 1, "-watch=5": 2, "-watch=0.6": 16, "-watch=false": 1} {
		synctest.Test(t, func(t *testing.T) {
			stdout, stderr, code := watch(t, unknowing{}, 9500*time.Millisecond, flag)
			if got := strings.Count(stdout, "mail "); got != want || stderr != "" || code != 0 {
				t.Errorf("%s: %d frames in 9.5s, want %d; exit %d, %q", flag, got, want, code, stderr)
			}
		})
	}
}

func TestWatchLivesThroughOutages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stats := &flaky{failed: func(call int) bool { return call == 2 || call == 3 }}
		stdout, _, code := watch(t, stats, 9*time.Second, "-watch")
		if code != 0 || strings.Count(stdout, "mail ") != 3 || strings.Count(stdout, "cannot be read: queue mail: dial redis://host: connection refused\n") != 2 {
			t.Errorf("exit %d:\n%s", code, stdout)
		}
		stats = &flaky{failed: func(call int) bool { return call == 2 }}
		stdout, stderr, code := watch(t, stats, 5*time.Second, "-watch", "-o", "json")
		if code != 0 || strings.Count(stdout, "\n") != 2 || stderr != "backstagectl stats: queue mail: dial redis://host: connection refused\n" {
			t.Errorf("exit %d, %q:\n%s", code, stderr, stdout)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		stats := &flaky{failed: func(int) bool { return true }}
		if stdout, stderr, code := watch(t, stats, time.Minute, "-watch"); code != 1 || stdout != "" || !strings.Contains(stderr, "connection refused") {
			t.Errorf("a broker that is never there: exit %d, %q, %q; want 1 at once", code, stdout, stderr)
		}
	})
}

func TestMomentsAndDurations(t *testing.T) {
	t.Parallel()
	now := time.Date(2025, 10, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"0s": now, "90m": now.Add(-90 * time.Minute), "7d": now.AddDate(0, 0, -7), "1d12h": now.Add(-36 * time.Hour),
		"2025-10-30": now.Add(-36 * time.Hour), "2025-10-31T13:00:00+02:00": now.Add(-time.Hour),
		"2025-10-31T11:59:59.999999999Z": now.Add(-1),
		"":                               {}, "-1h": {}, "d": {}, "1d-1h": {}, "70000d": {}, "tomorrow": {}, "31.10.2025": {}, "5": {},
	} {
		var m moment
		err := m.Set(text)
		if (err != nil) != want.IsZero() {
			t.Errorf("%q: error %v", text, err)
		}
		if err == nil && !m.before(now).Equal(want) {
			t.Errorf("%q: %v, want %v", text, m.before(now), want)
		}
	}
	if none := (&moment{}).before(now); !none.IsZero() {
		t.Errorf("no moment is %v", none)
	}
}

func TestAges(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": 0, "12ms": 12345 * time.Microsecond, "3.2s": 3290 * time.Millisecond, "59.9s": 59999 * time.Millisecond, "4m10s": 250*time.Second + 1,
		"2h5m": 2*time.Hour + 5*time.Minute + 59*time.Second, "3d4h": 76*time.Hour + 59*time.Minute, "-2m0s": -2 * time.Minute,
	} {
		if got := age(d); got != want {
			t.Errorf("age(%v) = %q, want %q", d, got, want)
		}
	}
}

// Whoever reads what early flags say must not read them twice.
func TestEveryCommandHasTheEarlyFlags(t *testing.T) {
	t.Parallel()
	p := program(world{getenv: func(string) string { return "" }})
	early := flag.NewFlagSet("", flag.ContinueOnError)
	early.SetOutput(io.Discard)
	p.Early(early)
	for _, cmd := range p.Commands {
		if cmd.Name == "version" {
			continue
		}
		set, _ := cmd.FlagSet()
		early.VisitAll(func(f *flag.Flag) {
			if set.Lookup(f.Name) == nil {
				t.Errorf("%s has no -%s", cmd.Name, f.Name)
			}
		})
	}
}
