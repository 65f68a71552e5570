package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/backstage-go/backstage/providers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	w := world{open: providers.OpenExisting, now: time.Now, getenv: os.Getenv}
	os.Exit(program(w).Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
