package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/backstage-go/backstage/examples/shop/gen/shop/v1/ordertasks"
	backstage "github.com/backstage-go/backstage/runtime"
)

// work is the worker: it runs jobs until ctx ends, and finishes what it runs then.
func work(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("shop worker", flag.ExitOnError)
	at := placeFlags(flags)
	cfg := backstage.WorkerConfig{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flags.StringVar(&cfg.Name, "name", "", "`name` of the worker, for operators (default: the host's)")
	flags.IntVar(&cfg.Concurrency, "concurrency", 0, "how many handlers run at `once` (default: 10 for each core)")
	flags.DurationVar(&cfg.Lease, "lease", backstage.DefaultLease, "how long a dead worker keeps its jobs")
	health := flags.String("health", "", "`address` that answers GET /healthz (default: none)")
	if err := parse(flags, args); err != nil {
		return err
	}
	s, err := at.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()

	cfg.Interceptors = []backstage.Interceptor{s.ledger.noteRuns}
	worker, err := backstage.NewWorker(s.provider, cfg)
	if err != nil {
		return err
	}
	ordertasks.Register(worker, handlers{bank{s.ledger}, s.ledger})
	if *health != "" {
		stop, err := serveHealth(*health, worker)
		if err != nil {
			return err
		}
		defer stop()
	}
	return worker.Run(ctx)
}

// serveHealth answers whether a worker is well, until stop is called.
func serveHealth(address string, worker *backstage.Worker) (stop func(), err error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := worker.Health(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // until it is closed
	}()
	return func() {
		_ = server.Close()
		<-served
	}, nil
}
