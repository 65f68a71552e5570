package main

import (
	"context"
	"flag"
	"time"

	"github.com/backstage-go/backstage/internal/command"
	"github.com/backstage-go/backstage/runtime/provider"
)

// A world is what commands reach for beyond their console.
type world struct {
	open   func(ctx context.Context, url string) (*provider.Provider, error)
	now    func() time.Time
	getenv func(string) string
}

func program(w world) *command.Program {
	return &command.Program{
		Name:        "backstagectl",
		About:       "Backstagectl shows how the queues of a broker stand, and what to do about dead letters.",
		TopicsTitle: "About dead letters",
		Topics:      topics(),
		Commands: []*command.Command{
			statsCommand(w),
			listCommand(w),
			showCommand(w),
			replayCommand(w),
			discardCommand(w),
			versionCommand(),
		},
		Closing: `The broker is given by -url URL, before or behind the command, or by the variable
BACKSTAGE_URL. Start with: backstagectl -url embedded:jobs.db stats
`,
		Early: func(set *flag.FlagSet) {
			w.brokerFlags(set)
			command.FormatFlag(set, "text", "json")
		},
	}
}
