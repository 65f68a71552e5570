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
		About: `Version prints the version of Backstage that this program is part of, the Go that
built it, and the protobuf-go whose protoc-gen-go it has built in.`,
		Examples: `backstage version
backstage version -o json | jq -r .backstage`,
		Codes: `0  always
2  wrong usage`,
		Flags: func(set *flag.FlagSet) command.Action {
			format := command.FormatFlag(set, "text", "json")
			return func(_ context.Context, c *command.Console, _ []string) error {
				v := versions{command.Version(), runtime.Version(), command.VersionOf("google.golang.org/protobuf")}
				if *format == "json" {
					return c.JSON(v)
				}
				fmt.Fprintf(c.Out, "backstage %s, %s, protoc-gen-go %s\n", v.Backstage, v.Go, v.ProtocGenGo)
				return nil
			}
		},
	}
}

// versions is the result of version in JSON.
type versions struct {
	Backstage   string `json:"backstage"`
	Go          string `json:"go"`
	ProtocGenGo string `json:"protoc_gen_go"`
}
