package main

import "github.com/backstage-go/backstage/internal/command"

func program() *command.Program {
	return &command.Program{
		Name:        "backstage",
		About:       "Backstage runs typed tasks that are written down in protobuf schemas.",
		Commands:    commands(),
		Topics:      topics(),
		TopicsTitle: "About schemas",
		Closing: "Start with: backstage init shop. More about each: backstage help COMMAND.\n" +
			"The options of schemas are explained in backstage/v1/options.proto,\nwhich backstage proto DIR writes.\n",
		Check:    missing,
		ExitCode: exitCode,
	}
}

// commands returns all commands, in the order in which one meets them.
func commands() []*command.Command {
	return []*command.Command{
		initCommand(),
		generateCommand(),
		vetCommand(),
		tasksCommand(),
		graphCommand(),
		protoCommand(),
		versionCommand(),
	}
}
