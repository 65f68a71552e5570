package templates

import (
	"io"
	"slices"
	"strings"
)

// Graph is the chains of a set of schemas: which task may follow which.
type Graph struct {
	Tasks []Node `json:"tasks"`
	Edges []Edge `json:"edges"`
}

// Node is a task in a graph.
type Node struct {
	// RPC is the full name of its rpc.
	RPC string `json:"rpc"`
	// Service is the full name of its service.
	Service    string `json:"service"`
	Queue      string `json:"queue"`
	Deprecated bool   `json:"deprecated"`
	// Cycle says that the task may come back to itself.
	Cycle bool `json:"cycle"`
	// Short names it as short as is unambiguous in the graph.
	Short string `json:"short"`
}

// Edge says that To may follow From; both are full names of rpcs.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Finish fills in what follows from the tasks and edges: short names and
// cycles. It returns the graph.
func (g Graph) Finish() Graph {
	services := g.Services()
	count := map[string]int{}
	for _, name := range services {
		for _, s := range suffixes(name) {
			count[s]++
		}
	}
	for i := range g.Tasks {
		n := &g.Tasks[i]
		n.Short = n.Name()
		if len(services) > 1 {
			n.Short = shortest(n.Service, count) + "." + n.Short
		}
		n.Cycle = g.reaches(n.RPC, n.RPC, map[string]bool{})
	}
	return g
}

// suffixes returns a full name without its first parts, shortest first.
func suffixes(name string) []string {
	var out []string
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '.' {
			out = append(out, name[i+1:])
		}
	}
	return append(out, name)
}

// shortest returns the shortest end of a full name that no other has.
func shortest(name string, count map[string]int) string {
	for _, s := range suffixes(name) {
		if count[s] == 1 {
			return s
		}
	}
	return name
}

func (g Graph) reaches(from, to string, seen map[string]bool) bool {
	for _, next := range g.next(from) {
		if next == to {
			return true
		}
		if !seen[next] {
			seen[next] = true
			if g.reaches(next, to, seen) {
				return true
			}
		}
	}
	return false
}

func (g Graph) next(rpc string) []string {
	var out []string
	for _, e := range g.Edges {
		if e.From == rpc {
			out = append(out, e.To)
		}
	}
	return out
}

func (g Graph) node(rpc string) Node {
	for _, n := range g.Tasks {
		if n.RPC == rpc {
			return n
		}
	}
	return Node{RPC: rpc, Short: rpc}
}

// Text writes the graph as trees for a terminal.
func (g Graph) Text(w io.Writer) error {
	return render(w, "graph.txt.tmpl", g)
}

// Mermaid writes the graph in the language of mermaid, which GitHub and others
// draw.
func (g Graph) Mermaid(w io.Writer) error {
	return render(w, "graph.mmd.tmpl", g)
}

// Services returns the full names of the services, in the order of their tasks.
func (g Graph) Services() []string {
	var out []string
	for _, n := range g.Tasks {
		if !slices.Contains(out, n.Service) {
			out = append(out, n.Service)
		}
	}
	return out
}

// Of returns the tasks of a service.
func (g Graph) Of(service string) []Node {
	var out []Node
	for _, n := range g.Tasks {
		if n.Service == service {
			out = append(out, n)
		}
	}
	return out
}

// ID names a task or a service where dots mean something.
func (Graph) ID(name string) string {
	return strings.NewReplacer("_", "_u", ".", "__").Replace(name)
}

// Name is a task's own name.
func (n Node) Name() string {
	return n.RPC[strings.LastIndexByte(n.RPC, '.')+1:]
}
