package main

import (
	"context"
	"flag"

	"github.com/backstage-go/backstage/internal/command"
)

func tasksCommand() *command.Command {
	return &command.Command{
		Name:    "tasks",
		Summary: "show every task and what holds for its jobs",
		About: `Tasks prints the catalogue of all tasks, from the schemas alone: where a task's
jobs wait, how often and how long they run, what makes two jobs one (one job
per), which jobs start one at a time (in order by), what may follow (then), its
earlier names, and who to ask. Values are those in force: the task's own, else
its service's, else the built-in ones. -o json says for each where it is from.

` + whichSchemas,
		Examples: `backstage tasks
backstage tasks -o markdown > TASKS.md
backstage tasks -o json | jq '.services[].tasks[] | {rpc, queue: .options.queue.value}'`,
		Codes: `0  the catalogue is printed
1  a schema has errors
2  wrong usage
3  it could not be done`,
		Flags: func(set *flag.FlagSet) command.Action {
			options, format := schemaFlags(set), command.FormatFlag(set, "text", "json", "markdown")
			return func(ctx context.Context, c *command.Console, _ []string) error {
				project, err := loadTasks(ctx, c, options)
				if err != nil {
					return err
				}
				catalogue := catalogueOf(project)
				switch *format {
				case "json":
					return c.JSON(catalogue)
				case "markdown":
					return catalogue.Markdown(c.Out)
				}
				return catalogue.Text(c.Out)
			}
		},
	}
}
