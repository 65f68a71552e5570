// Command backstage turns schemas into Go, and answers questions about them. It
// needs neither protoc nor buf, no network and no broker.
//
//	backstage init shop     # a first project
//	backstage generate      # Go for all schemas of the module
//	backstage vet           # what is wrong or odd in them, as a whole
//	backstage tasks         # every task, and what holds for its jobs
//	backstage graph         # which task may follow which
//	backstage proto proto   # the options' file, for protoc, buf and editors
//
// backstage help COMMAND says more about each; backstage help keys and durations say
// how these are written in schemas. A module keeps the generator of
// the version that it runs with when it calls it as a tool of its own:
//
//	go get -tool github.com/backstage-go/backstage/cmd/backstage
//	go tool backstage generate
//
// # Exit codes
//
//	0  it worked; warnings may have been printed
//	1  the schemas have errors, or there is what was searched for (vet -strict,
//	   generate -check)
//	2  wrong usage
//	3  it could not be done: no go.mod, a file that cannot be read or written,
//	   a signal that ended it
//
// # JSON
//
// generate, vet, tasks, graph and version print one JSON document on standard output with
// -o json. Fields are added, never renamed; lists are never null. The documents:
//
//	generate  {"written": [file], "deleted": [file], "nothing": [{"schema", "why"}],
//	           "diagnostics": [diagnostic]}
//	vet       {"errors": n, "warnings": n, "diagnostics": [diagnostic]}
//	tasks     {"services": [service]}, as package templates has it
//	graph     {"tasks": [node], "edges": [edge]}, as package templates has it
//	version   {"backstage", "go", "protoc_gen_go"}
//
// A diagnostic is {"severity": "error" or "warning", "file", "line", "column",
// "end_line", "end_column", "message", "hint", "paste": [line]}. Places count from
// 1; line 0 means that only the file is known. Files are relative to the working
// directory in diagnostics, and to the module's root in written and deleted. In
// generate and vet diagnostics are in the document and not on standard error;
// tasks and graph print errors there, and no document.
package main
