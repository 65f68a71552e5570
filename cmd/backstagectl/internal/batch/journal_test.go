package batch_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/backstage-go/backstage/cmd/backstagectl/internal/batch"
)

func planOf(n int) batch.Plan {
	p := batch.Plan{
		Action: batch.Replay, URL: "embedded:jobs.db", Selection: []string{"-queue=orders"},
		MadeAt: time.Date(2025, 10, 31, 12, 0, 0, 1, time.UTC), Missing: []string{"ids.txt:3: \"x\""}, Older: 1, Unclaimed: 2,
	}
	for i := range n {
		p.Letters = append(p.Letters, batch.Letter{
			Address: string(rune('a' + i)), Job: "A&<" + string(rune('a'+i)), Queue: "orders", Task: "T", Class: "too old",
			DiedAt: time.Date(2025, 10, 31, 11, 0, 0, i, time.UTC), Replays: int32(i),
		})
	}
	return p
}

func create(t *testing.T, path string, plan batch.Plan) *batch.Journal {
	t.Helper()
	j, err := batch.Create(path, plan)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func reopen(t *testing.T, path string) *batch.Journal {
	t.Helper()
	j, err := batch.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func record(t *testing.T, j *batch.Journal, results ...batch.Result) {
	t.Helper()
	if err := j.Record(results); err != nil {
		t.Fatal(err)
	}
}

func TestAJournalKeepsItsPlanAndWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j := create(t, path, planOf(3))
	record(t, j, batch.Result{Address: "a", Outcome: batch.Refused, Error: "full"}, batch.Result{Address: "b", Outcome: batch.Duplicate, Holder: "B"})
	record(t, j, batch.Result{Address: "a", Outcome: batch.Replayed})
	again := reopen(t, path)
	record(t, again, batch.Result{Address: "a", Outcome: batch.Gone}, batch.Result{Address: "c", Outcome: batch.Unknown})
	for name, j := range map[string]*batch.Journal{"the journal that wrote on": again, "one that reads all": reopen(t, path)} {
		if diff := cmp.Diff(planOf(3), j.Plan); diff != "" {
			t.Errorf("%s: the plan (-want +got)\n%s", name, diff)
		}
		want := map[string]batch.Result{
			"a": {Address: "a", Outcome: batch.Replayed},
			"b": {Address: "b", Outcome: batch.Duplicate, Holder: "B"},
			"c": {Address: "c", Outcome: batch.Unknown},
		}
		if diff := cmp.Diff(want, j.Results); diff != "" {
			t.Errorf("%s: the results (-want +got)\n%s", name, diff)
		}
	}
	if _, err := batch.Create(path, planOf(1)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second plan in the same file: %v, want fs.ErrExist", err)
	}
}

// A process may be killed after any byte that it writes.
func TestAJournalThatIsCutOffAnywhereIsReadOrMadeAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "journal")
	j := create(t, path, planOf(2))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	planned := len(whole)
	record(t, j, batch.Result{Address: "a", Outcome: batch.Replayed}, batch.Result{Address: "b", Outcome: batch.Refused, Error: "é"})
	if whole, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) + 1 {
		cut := filepath.Join(dir, "cut")
		if err := os.WriteFile(cut, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := batch.Open(cut)
		if n < planned {
			if !errors.Is(err, batch.ErrNoPlan) {
				t.Fatalf("%d of %d bytes: %v, want ErrNoPlan", n, len(whole), err)
			}
			anew, err := batch.Create(cut, planOf(1))
			if err != nil {
				t.Fatalf("%d of %d bytes: made anew: %v", n, len(whole), err)
			}
			_ = anew.Close()
			if got := reopen(t, cut).Plan.Letters; len(got) != 1 {
				t.Fatalf("%d of %d bytes: made anew with %d letters, want 1", n, len(whole), len(got))
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
		if want := strings.Count(string(whole[planned:n]), "\n"); len(j.Results) != want {
			t.Fatalf("%d of %d bytes: %d results, want %d", n, len(whole), len(j.Results), want)
		}
		record(t, j, batch.Result{Address: "b", Outcome: batch.Gone})
		_ = j.Close()
		if got := reopen(t, cut).Results["b"].Outcome; got != batch.Gone {
			t.Fatalf("%d of %d bytes: what was added is read as %q", n, len(whole), got)
		}
	}
}

func TestAFileThatIsNoJournalIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"text":           "dear diary\n",
		"one line":       "dear diary",
		"JSON":           "{\"name\":\"x\"}\n",
		"JSON, one line": "{\"name\":\"x\"}",
		"newer":          "{\"backstagectl\":\"batch of dead letters\",\"version\":2,\"letters\":0}\n",
		"damaged":        "{\"backstagectl\":\"batch of dead letters\",\"version\":1,\"letters\":0}\nx\n{}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := batch.Open(path); err == nil || errors.Is(err, batch.ErrNoPlan) || !strings.Contains(err.Error(), path) {
				t.Errorf("open: %v, want an error that names the file", err)
			}
			if _, err := batch.Create(path, planOf(1)); err == nil {
				t.Error("create: no error")
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != text {
				t.Errorf("the file is %q now (%v)", got, err)
			}
		})
	}
	if _, err := batch.Open(filepath.Join(t.TempDir(), "nowhere")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v, want fs.ErrNotExist", err)
	}
}
