// Quickstart shows what Backstage does, on one machine and without a server: it
// reads orders from a file of JSON lines, charges each and sends a receipt, in a
// worker process that kills itself right after one of the charges. The next
// worker finishes that job too: two starts, one charge.
//
//	go run ./examples/quickstart [-orders file.jsonl] [-dir folder]
//
// The handlers are in shop.go, the schema is in proto/.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

//go:embed orders.jsonl
var bundled []byte

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run() error {
	file := flag.String("orders", "", `file of JSON lines such as {"order_id": "A-1", "account": "acct-7", "cents": 990} (default: a bundled one)`)
	dir := flag.String("dir", "", "folder for the two databases, kept afterwards (default: a temporary one, removed)")
	asWorker := flag.Bool("worker", false, "run as the demo's worker process, which the demo starts itself")
	dieAfter := flag.String("die-after", "", "with -worker: the order after whose charge to die")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *asWorker {
		return work(ctx, *dir, *dieAfter)
	}
	var source io.Reader = bytes.NewReader(bundled)
	if *file != "" {
		f, err := os.Open(*file)
		if err != nil {
			return err
		}
		defer f.Close()
		source = f
	}
	if *dir == "" {
		temp, err := os.MkdirTemp("", "quickstart-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		*dir = temp
	} else if err := newFolder(*dir); err != nil {
		return err
	}
	return demo(ctx, source, *dir, os.Stdout)
}

// newFolder makes the folder of a demo. Two demos in one would count each other's
// orders.
func newFolder(dir string) error {
	if _, err := os.Stat(queueFile(dir)); err == nil {
		return fmt.Errorf("%s has the files of an earlier run; name another folder, or remove it", dir)
	}
	return os.MkdirAll(dir, 0o700)
}

func queueFile(dir string) string  { return filepath.Join(dir, "queue.db") }
func ledgerFile(dir string) string { return filepath.Join(dir, "ledger.db") }
