package main

import (
	"fmt"
	"strings"
)

// commands returns all commands, in the order in which one meets them.
func commands() []*command {
	return []*command{
		initCommand(),
		generateCommand(),
		vetCommand(),
		tasksCommand(),
		graphCommand(),
		protoCommand(),
		versionCommand(),
	}
}

func find(name string) *command {
	for _, cmd := range commands() {
		if cmd.name == name {
			return cmd
		}
	}
	return nil
}

func overview() string {
	var b strings.Builder
	b.WriteString("Backstage runs typed tasks that are written down in protobuf schemas.\n\n" +
		"usage: backstage COMMAND [flags]\n\n")
	for _, cmd := range commands() {
		fmt.Fprintf(&b, "  %-9s %s\n", cmd.name, cmd.summary)
	}
	fmt.Fprintf(&b, "  %-9s %s\n", "help", "what is above, or more about one command")
	b.WriteString("\nAbout schemas (backstage help TOPIC):\n\n")
	for _, t := range topics() {
		fmt.Fprintf(&b, "  %-9s %s\n", t.name, t.summary)
	}
	b.WriteString("\nStart with: backstage init shop. More about each: backstage help COMMAND.\n" +
		"The options of schemas are explained in backstage/v1/options.proto,\nwhich backstage proto DIR writes.\n")
	return b.String()
}
