// Shop shows one set of handlers on any broker, which a URL chooses, with the
// producer and the workers in processes of their own. Every process may be killed
// at any moment, and so may the broker: `report` says whether the numbers add up.
//
//	go run ./examples/shop demo                                     all of it, without a server
//	go run ./examples/shop worker  -url redis://127.0.0.1:6379/0    runs jobs until SIGTERM; start two
//	go run ./examples/shop produce -url redis://127.0.0.1:6379/0    enqueues orders
//	go run ./examples/shop report  -url redis://127.0.0.1:6379/0    what became of them
//
// The handlers are in handlers.go, the schema is in proto/. README.md says what to
// kill, and what to look at.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: shop worker|produce|report|demo [flags]

  worker   runs jobs until it is interrupted, and finishes what it runs then
  produce  enqueues orders
  report   prints what became of all orders so far
  demo     starts a producer and two workers, kills one of them, and reports

shop COMMAND -help lists the flags of a command`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "worker":
		return work(ctx, args[1:])
	case "produce":
		return produce(ctx, args[1:])
	case "report":
		return report(ctx, args[1:])
	case "demo":
		return demo(ctx, args[1:])
	}
	return fmt.Errorf("there is no command %q\n%s", args[0], usage)
}
