package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"

	"github.com/backstage-go/backstage/internal/command"
)

func versionCommand() *command.Command {
	return &command.Command{
		Name:    "version",
		Summary: "print the version",
		About:   "Version prints the version of Backstage that this program is part of, and the Go\nthat built it.",
		Examples: `backstagectl version
backstagectl version -o json | jq -r .backstage`,
		Codes: "0  always\n2  wrong usage",
		Flags: func(set *flag.FlagSet) command.Action {
			format := command.FormatFlag(set, "text", "json")
			return func(_ context.Context, c *command.Console, _ []string) error {
				if *format == "json" {
					return c.JSONLine(versions{command.Version(), runtime.Version()})
				}
				_, err := fmt.Fprintf(c.Out, "backstagectl %s, %s\n", command.Version(), runtime.Version())
				return err
			}
		},
	}
}

// versions is the result of version in JSON.
type versions struct {
	Backstage string `json:"backstage"`
	Go        string `json:"go"`
}
