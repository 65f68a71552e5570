package templates

import (
	"slices"
	"strings"
)

// Chains returns the trees of the graph, a line an entry: first those that begin
// where nothing leads, then those that only run in circles. A task that was
// spread out before is not spread out again.
func (g Graph) Chains() []string {
	t := &tree{graph: g, shown: map[string]bool{}}
	led := map[string]bool{}
	for _, e := range g.Edges {
		if e.From != e.To {
			led[e.To] = true
		}
	}
	for _, n := range g.Tasks {
		if !led[n.RPC] && len(g.next(n.RPC)) > 0 {
			t.root(n)
		}
	}
	for _, n := range g.Tasks {
		if !t.shown[n.RPC] && len(g.next(n.RPC)) > 0 {
			t.root(n)
		}
	}
	return t.lines
}

// Alone returns the tasks that nothing leads to and that lead nowhere.
func (g Graph) Alone() []Node {
	linked := map[string]bool{}
	for _, e := range g.Edges {
		linked[e.From], linked[e.To] = true, true
	}
	var out []Node
	for _, n := range g.Tasks {
		if !linked[n.RPC] {
			out = append(out, n)
		}
	}
	return out
}

type tree struct {
	graph Graph
	lines []string
	shown map[string]bool
	path  []string
}

func (t *tree) root(n Node) {
	t.lines = append(t.lines, n.Label())
	t.below(n, "")
}

// below adds what may follow a task.
func (t *tree) below(n Node, indent string) {
	t.shown[n.RPC] = true
	t.path = append(t.path, n.RPC)
	next := t.graph.next(n.RPC)
	for i, rpc := range next {
		branch, deeper := "├─ ", "│  "
		if i == len(next)-1 {
			branch, deeper = "└─ ", "   "
		}
		child := t.graph.node(rpc)
		line := indent + branch + child.Label()
		switch {
		case slices.Contains(t.path, rpc):
			t.lines = append(t.lines, line+"  ↺ cycle")
		case t.shown[rpc] && len(t.graph.next(rpc)) > 0:
			t.lines = append(t.lines, line+"  … as above")
		default:
			t.lines = append(t.lines, line)
			t.below(child, indent+deeper)
		}
	}
	t.path = t.path[:len(t.path)-1]
}

// Label is how a tree shows a task.
func (n Node) Label() string {
	label := n.Short + " (" + n.Queue + ")"
	if n.Deprecated {
		label += " deprecated"
	}
	return strings.TrimSuffix(label, " ()")
}
