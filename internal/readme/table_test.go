package readme

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/providers"
	"github.com/backstage-go/backstage/runtime/provider"
	"github.com/backstage-go/backstage/runtime/provider/providertest"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the provider table into the README")

const (
	tableBegin = "<!-- providers: printed by the tests of internal/readme -->\n"
	tableEnd   = "<!-- end of providers -->\n"
)

// TestTheReadmesTableIsWhatProvidersClaim: and what they claim is what the suite
// measured, because a provider that claims more fails it.
func TestTheReadmesTableIsWhatProvidersClaim(t *testing.T) {
	readme := read(t)
	before, rest, ok := strings.Cut(readme, tableBegin)
	got, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("the README has no place for the table between %q and %q", tableBegin, tableEnd)
	}
	want := table(open(t))
	if *update {
		if err := os.WriteFile(filepath.Join(root, "README.md"), []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the README's table (-providers +README; go run ./internal/brokers/run -- go test ./internal/readme -update mends it):\n%s", diff)
	}
}

func open(t *testing.T) []*provider.Provider {
	t.Helper()
	var all []*provider.Provider
	for _, address := range []string{
		"memory:",
		"embedded:" + filepath.Join(t.TempDir(), "jobs.db"),
		"redis://" + brokers.SharedRedis(t) + "?namespace=readme",
		"amqp://" + brokers.SharedRabbitMQ(t) + "?prefix=readme",
		"kafka://" + brokers.SharedKafka(t) + "?prefix=readme&replication=1",
	} {
		p, err := providers.Open(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close(context.Background()) })
		all = append(all, p)
	}
	return all
}

// table is the facts of providers in Markdown, a column each.
func table(all []*provider.Provider) string {
	var b strings.Builder
	b.WriteString("| |")
	for _, p := range all {
		fmt.Fprintf(&b, " %s |", p.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(all)) + "\n")
	for i, fact := range providertest.Facts(all[0]) {
		fmt.Fprintf(&b, "| %s |", fact.Name)
		for _, p := range all {
			fmt.Fprintf(&b, " %s |", providertest.Facts(p)[i].Value)
		}
		b.WriteString("\n")
	}
	return b.String()
}
