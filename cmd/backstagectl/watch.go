package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/backstage-go/backstage/internal/command"
	"github.com/backstage-go/backstage/runtime/provider"
)

// clearScreen moves a terminal's cursor home and clears what is below.
const clearScreen = "\x1b[H\x1b[J"

// again prints the numbers until ctx ends, which is how one ends it: no error. The
// first time must succeed; later a broker that does not answer is part of what is to
// be seen.
func (s *statistics) again(ctx context.Context, c *command.Console, stats provider.Stats, queues []string) error {
	ticker := time.NewTicker(time.Duration(s.watch))
	defer ticker.Stop()
	for first := true; ; first = false {
		rows, err := s.read(ctx, stats, queues)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		}
		if err := s.frame(c, rows, shownSafely(err)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// frame prints the numbers once. On a terminal they replace those before.
func (s *statistics) frame(c *command.Console, rows []queueRow, failed error) error {
	if *s.format == "json" {
		if failed != nil {
			fmt.Fprintf(c.Err, "backstagectl stats: %v\n", failed)
		}
		return s.print(c, rows)
	}
	var b strings.Builder
	if isTerminal(c.Out) {
		b.WriteString(clearScreen)
	}
	fmt.Fprintf(&b, "%s, every %v; Ctrl-C ends it\n\n", s.broker.now().Format(time.DateTime), time.Duration(s.watch))
	if failed != nil {
		fmt.Fprintf(&b, "cannot be read: %s\n", clean(failed.Error()))
	} else if err := s.table(&b, rows); err != nil {
		return err
	}
	if !isTerminal(c.Out) {
		b.WriteByte('\n')
	}
	_, err := fmt.Fprint(c.Out, b.String()) // in one piece, so that it does not flicker
	return err
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
