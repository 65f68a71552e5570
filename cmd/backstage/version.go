package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
)

func versionCommand() *command {
	return &command{
		name:    "version",
		summary: "print the version",
		about: `Version prints the version of Backstage that this program is part of, the Go that
built it, and the protobuf-go whose protoc-gen-go it has built in.`,
		examples: `backstage version
backstage version -o json | jq -r .backstage`,
		codes: `0  always
2  wrong usage`,
		flags: func(set *flag.FlagSet) action {
			format := formatFlag(set, "text", "json")
			return func(_ context.Context, c *console, _ []string) error {
				v := versions{backstageVersion(), runtime.Version(), protobufVersion()}
				if *format == "json" {
					return c.json(v)
				}
				fmt.Fprintf(c.out, "backstage %s, %s, protoc-gen-go %s\n", v.Backstage, v.Go, v.ProtocGenGo)
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

const unreleased = "(devel)"

// backstageVersion returns the version of the module that this program is part
// of, which in a checkout has none.
func backstageVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path != modulePath || info.Main.Version == "" {
		return unreleased
	}
	return info.Main.Version
}

func protobufVersion() string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, dep := range info.Deps {
			if dep.Path == "google.golang.org/protobuf" {
				return dep.Version
			}
		}
	}
	return unreleased
}
