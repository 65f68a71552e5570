// Package compile turns the schemas of a Go module into Go without protoc and
// without buf: it finds them, compiles them in this process, and runs
// protoc-gen-go and Backstage's own generator over them.
//
//	project, err := compile.Load(ctx, compile.Options{Dir: "."})
//	files, err := project.Generate()
//	changes, err := project.Write(files)
//
// A loaded project also answers questions about its tasks, so vet, tasks and
// graph need no more than Load. What is wrong with the schemas is in
// [Project.Diagnostics], with places relative to the working directory.
package compile
