package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// release is the release whose record -update adds. Records of earlier ones are
// never written again: jobs that wait in queues were written by them.
const release = "v0.1"

var update = flag.Bool("update", false, "add the record of a new release")

// TestRecordsOfAllReleases reads one stored record of each release, and checks
// that it still means what it meant.
func TestRecordsOfAllReleases(t *testing.T) {
	dir := filepath.Join("..", "..", "golden", "records")
	if *update {
		addRelease(t, filepath.Join(dir, release))
	}
	records, err := filepath.Glob(filepath.Join(dir, "*.binpb"))
	if err != nil || len(records) == 0 {
		t.Fatalf("no records in %s: %v", dir, err)
	}
	for _, name := range records {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".binpb"), func(t *testing.T) {
			stored, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			meaning, err := os.ReadFile(strings.TrimSuffix(name, ".binpb") + ".json")
			if err != nil {
				t.Fatal(err)
			}
			// Fields that are newer than the record are zero in both.
			var then Job
			words := json.NewDecoder(bytes.NewReader(meaning))
			words.DisallowUnknownFields()
			if err := words.Decode(&then); err != nil {
				t.Fatal(err)
			}
			j := unmarshal(t, stored)
			if diff := cmp.Diff(then, j, cmpopts.IgnoreUnexported(Job{}, Failure{}, Replay{})); diff != "" {
				t.Errorf("the record is read as another job than then (-then +now):\n%s", diff)
			}
			again := unmarshal(t, marshal(t, &j))
			if diff := cmp.Diff(j, again, whole); diff != "" {
				t.Errorf("written again it is another job (-read +again):\n%s", diff)
			}
		})
	}
}

// addRelease writes the record of this release, once.
func addRelease(t *testing.T, base string) {
	t.Helper()
	if _, err := os.Stat(base + ".binpb"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the record of %s is there (%v), and jobs like it wait in queues: name the new release in this file", release, err)
	}
	at := time.Unix(1_767_225_600, 123_456_789).UTC()
	j := Job{
		Requires: []string{"payload/v2"},
		ID:       "01K9Z3", Task: "shop.orders.v1.OrderTasks.ChargeCard", Queue: "orders", Payload: []byte("\x0a\x06A-1009"),
		Enqueued: at, FirstDue: at.Add(time.Hour), Expires: 24 * time.Hour,
		OrderingKey: "customer/7",
		Dedupe:      Dedupe{Key: "shop.orders.v1.OrderTasks.ChargeCard/order/A-1009", For: 24 * time.Hour, UntilDone: true},
		Overrides: Overrides{
			Timeout: 30 * time.Second, MaxAttempts: 8, MaxAge: 48 * time.Hour, BackoffBase: time.Second, BackoffCap: 5 * time.Minute,
		},
		Counters: Counters{Failures: 1, Crashes: 2, Snoozes: 3, Parks: 4, Starts: 5, StartCrashes: 6, Replays: 1},
		History:  []Failure{{At: at, Class: ClassTimeout, Message: "too slow", Worker: "worker-1", Attempt: 1, Detail: "goroutine 1 [running]"}},
		Replays:  []Replay{{At: at, Failures: 8, Crashes: 1}},
		Root:     "01K9Z1", Parent: "01K9Z2", Edge: "PlaceOrder.ChargeCard", Ordinal: 1,
		Headers:     map[string]string{"a": "1", "b": "ü"},
		Correlation: "order A-1009", Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Actor: "user/1",
		Tenant: "eu", Codec: "zstd", KeyID: "2026-01",
	}
	j.Format = Format
	words, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	stored := append(marshal(t, &j), 0xc2, 0x3e, 5, 'l', 'a', 't', 'e', 'r')
	for name, b := range map[string][]byte{base + ".binpb": stored, base + ".json": append(words, '\n')} {
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
