package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/backstage-go/backstage/providers"
	"github.com/backstage-go/backstage/runtime/provider"
)

func main() { os.Exit(run(providers.OpenExisting)) }

// run is the program, with what opens brokers.
func run(open func(ctx context.Context, url string) (*provider.Provider, error)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	w := world{open: open, now: time.Now, getenv: os.Getenv}
	return program(w).Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
