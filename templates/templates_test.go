package templates_test

import (
	"go/format"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/backstage-go/backstage/templates"
)

// That a project compiles and works is tested where it is written, in
// cmd/backstage.
func TestAProjectsFilesAreFormatted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "shop", "averylongnameforaproject"} {
		files, err := templates.Project{Name: name, Package: "example.com/" + name}.Files()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f.Content, "\n") || strings.Contains(f.Content, " \n") || strings.Contains(f.Content, "{{") {
				t.Errorf("%s: white space at an end, or a template that was not filled:\n%s", f.Name, f.Content)
			}
			if !strings.HasSuffix(f.Name, ".go") {
				continue
			}
			want, err := format.Source([]byte(f.Content))
			if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			if diff := cmp.Diff(string(want), f.Content); diff != "" {
				t.Errorf("%s of project %s is not as gofmt has it:\n%s", f.Name, name, diff)
			}
		}
	}
}

func TestATableLeavesOutEmptyColumns(t *testing.T) {
	t.Parallel()
	service := templates.Service{Name: "s.Tasks", Tasks: []templates.Task{
		{RPC: "s.Tasks.A", Name: "s.Tasks.A", Short: "A", Options: options("max_attempts", "1", "timeout", "1m", "queue", "q"), Next: []string{"s.Tasks.B", "t.Tasks.C"}},
		{RPC: "s.Tasks.B", Name: "b", Short: "B", Options: options("max_attempts", "2", "timeout", "3s", "backoff", "1s", "queue", "queue")},
	}}
	got, err := service.Table()
	if err != nil {
		t.Fatal(err)
	}
	const want = `  TASK  QUEUE  RUNS                          THEN          ALSO CALLED
  A     q      once, 1m                      B, t.Tasks.C  -
  B     queue  2 times, 3s each, backoff 1s  -             b
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	const page = `| task | queue | runs | then | also called |
| --- | --- | --- | --- | --- |
| A | q | once, 1m | B, t.Tasks.C | – |
| B | queue | 2 times, 3s each, backoff 1s | – | b |
`
	if diff := cmp.Diff(page, service.MarkdownTable()); diff != "" {
		t.Errorf("as Markdown (-want +got)\n%s", diff)
	}
}

func options(pairs ...string) map[string]templates.Option {
	out := map[string]templates.Option{"max_age": {Value: "7d", From: "built-in"}}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = templates.Option{Value: pairs[i+1], From: "task"}
	}
	return out
}

func TestChains(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		edges string
		want  []string
	}{
		"none":            {"", nil},
		"itself":          {"A>A", []string{"A", "└─ A  ↺ cycle"}},
		"a chain":         {"A>B B>C", []string{"A", "└─ B", "   └─ C"}},
		"a fork":          {"A>B A>C", []string{"A", "├─ B", "└─ C"}},
		"a diamond":       {"A>B A>C B>D C>D D>E", []string{"A", "├─ B", "│  └─ D", "│     └─ E", "└─ C", "   └─ D  … as above"}},
		"a circle":        {"A>B B>A", []string{"A", "└─ B", "   └─ A  ↺ cycle"}},
		"into a circle":   {"C>A A>B B>A", []string{"C", "└─ A", "   └─ B", "      └─ A  ↺ cycle"}},
		"beside a circle": {"A>A B>C", []string{"A", "└─ A  ↺ cycle", "B", "└─ C"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, graph(c.edges).Chains()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func graph(edges string) templates.Graph {
	var g templates.Graph
	for _, name := range strings.Split("A B C D E", " ") {
		if strings.Contains(edges, name) {
			g.Tasks = append(g.Tasks, templates.Node{RPC: "s.Tasks." + name, Service: "s.Tasks"})
		}
	}
	for _, edge := range strings.Fields(edges) {
		from, to, _ := strings.Cut(edge, ">")
		g.Edges = append(g.Edges, templates.Edge{From: "s.Tasks." + from, To: "s.Tasks." + to})
	}
	return g.Finish()
}

// Names, queues and keys may hold any printable character.
func TestOddTextStandsForItself(t *testing.T) {
	t.Parallel()
	const odd = "a|<b>`*c*\"[d]\\#"
	task := templates.Task{RPC: "s.Tasks.A", Name: odd, Short: "A", Options: options("queue", odd, "max_attempts", "1", "timeout", "1m", "dedupe_for", "done"),
		Aliases: []string{odd}, Dedupe: odd, Owner: odd, Make: odd, Run: "Run."}
	var page strings.Builder
	catalogue := templates.Catalogue{Services: []templates.Service{{Name: "s.Tasks", Place: "p", Package: "p", Owner: odd, Tasks: []templates.Task{task}}}}
	if err := catalogue.Markdown(&page); err != nil {
		t.Fatal(err)
	}
	const plain = "a\\|\\<b>\\`\\*c\\*\"\\[d\\]\\\\#"
	for _, want := range []string{
		"| A | " + plain + " | once, 1m | " + plain + " until done | " + plain + ", " + plain + " | " + plain + " |\n",
		"Owner: " + plain + ".\n",
		"\n" + plain + " Run.\n",
		"- Name on the wire: `` " + odd + " ``; also accepted: `` " + odd + " ``\n",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q:\n%s", want, page.String())
		}
	}
	var graph strings.Builder
	if err := (templates.Graph{Tasks: []templates.Node{{RPC: "s.Tasks.A", Service: "s.Tasks", Queue: odd}}}).Mermaid(&graph); err != nil {
		t.Fatal(err)
	}
	if want := `s__Tasks__A["A<br/>a|#lt;b#gt;#96;*c*#quot;[d]\#35;"]`; !strings.Contains(graph.String(), want) {
		t.Errorf("the graph has no %q:\n%s", want, graph.String())
	}
}

// TestNodesOfAGraphNeverMeet names nodes whose names differ in dots and underscores only.
func TestNodesOfAGraphNeverMeet(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, name := range []string{"a.b", "a_b", "a_.b", "a._b", "a._.b", "a__b", "a.__b", "a.ub", "a_ub", "a_u.b"} {
		id := templates.Graph{}.ID(name)
		if other, taken := seen[id]; taken {
			t.Errorf("%s and %s are both %s", other, name, id)
		}
		seen[id] = name
	}
}
