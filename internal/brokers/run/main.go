// Command run starts real brokers for a command, and takes them down when it has ended,
// or leaves them up for a developer:
//
//	go run ./internal/brokers/run -- go test ./providers/...
//	eval "$(go run ./internal/brokers/run up)"
//	go run ./internal/brokers/run down
//
// "-only redis", before the rest, starts these brokers alone; names have commas between
// them.
package main

import (
	"os"

	"github.com/backstage-go/backstage/internal/brokers"
)

func main() { os.Exit(brokers.Tool(os.Args[1:], os.Stdout, os.Stderr)) }
