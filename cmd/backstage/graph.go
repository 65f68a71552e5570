package main

import (
	"context"
	"flag"

	"github.com/backstage-go/backstage/codegen/compile"
	"github.com/backstage-go/backstage/internal/command"
	"github.com/backstage-go/backstage/templates"
)

func graphCommand() *command.Command {
	return &command.Command{
		Name:    "graph",
		Summary: "show which task may follow which",
		About: `Graph prints the chains of all tasks, from the schemas alone: what each task's
"then" names. As text it is a tree for each task that nothing leads to, with the
queue in brackets; where a task leads back to one above it, the tree says cycle.

` + whichSchemas,
		Examples: `backstage graph
backstage graph -o mermaid      # paste it into a ` + "```mermaid block" + `
backstage graph -o json | jq '.tasks[] | select(.cycle) | .rpc'`,
		Codes: `0  the graph is printed
1  a schema has errors
2  wrong usage
3  it could not be done`,
		Flags: func(set *flag.FlagSet) command.Action {
			options, format := schemaFlags(set), command.FormatFlag(set, "text", "json", "mermaid")
			return func(ctx context.Context, c *command.Console, _ []string) error {
				project, err := loadTasks(ctx, c, options)
				if err != nil {
					return err
				}
				graph := graphOf(project)
				switch *format {
				case "json":
					return c.JSON(graph)
				case "mermaid":
					return graph.Mermaid(c.Out)
				}
				return graph.Text(c.Out)
			}
		},
	}
}

// graphOf returns the chains of all tasks that a project generates, and of those
// imported ones that they lead to.
func graphOf(project *compile.Project) templates.Graph {
	out := templates.Graph{Tasks: []templates.Node{}, Edges: []templates.Edge{}}
	target := map[string]bool{}
	for _, t := range project.Tasks.Tasks() {
		if !t.Service.Generate {
			continue
		}
		for _, e := range t.Edges {
			out.Edges = append(out.Edges, templates.Edge{From: string(t.FullName), To: string(e.Target.FullName)})
			target[string(e.Target.FullName)] = true
		}
	}
	for _, t := range project.Tasks.Tasks() {
		if !t.Service.Generate && !target[string(t.FullName)] {
			continue
		}
		out.Tasks = append(out.Tasks, templates.Node{
			RPC:        string(t.FullName),
			Service:    string(t.Service.FullName),
			Queue:      t.Policy.Queue.Value,
			Deprecated: t.Deprecated,
		})
	}
	return out.Finish()
}
