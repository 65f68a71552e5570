package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/backstage-go/backstage/internal/command"
	"github.com/backstage-go/backstage/runtime/provider"
)

func showCommand(w world) *command.Command {
	return &command.Command{
		Name:     "dead show",
		Operands: "[ID…]",
		Summary:  "show all of some dead letters, with what they carry",
		About: `Show prints everything that is known of dead letters: why the job died, its last
failures, its counters, its chain, when it was replayed, and its payload. Letters
are named, or chosen by flags (backstagectl help letters).

A payload is decoded when its schema is given: a descriptor set (-schema), or .proto
files, which are compiled here (-proto, with -I for the folders of their imports).
It is shown as protobuf's JSON, and fields that are marked debug_redact are never
shown, however deep they lie: "[redacted]" stands in their place. Fields that the
schema does not know are only counted, and so are the bytes of an Any of unknown
type, for they may be secrets too. So give the schema that the jobs were made with,
or a newer one.

Without a schema the payload's size and hash are shown. Its bytes are never printed,
and there is no flag that does it. What a handler wrote into its error, and headers
and keys, are shown as they are.`,
		Examples: `backstagectl dead show 1760184000000001
backstagectl dead show job:A-1009 -proto proto
backstagectl dead show -queue orders -limit 3 -schema image.binpb    # buf build -o image.binpb
backstagectl dead show A-1009 -proto api/shop -I third_party -o json | jq .payload.value`,
		Codes: `0  the letters are shown
1  the broker could not be asked, the schema has errors, or a letter that was named
   is not there
2  wrong usage`,
		Flags: func(set *flag.FlagSet) command.Action {
			s := &showing{listing: listing{broker: w.brokerFlags(set), format: command.FormatFlag(set, "text", "json"), selection: selectionFlags(set)}}
			s.schema = schemaFlags(set)
			limitFlag(set, &s.limit)
			return s.run
		},
	}
}

// showing is one run of the command.
type showing struct {
	listing
	schema *schemaSource
}

func (s *showing) run(ctx context.Context, c *command.Console, operands []string) error {
	if len(operands) == 0 && len(s.selection.words(nil)) == 0 {
		return command.Usagef("say which: ids, or flags that choose")
	}
	schema, err := s.schema.load(ctx, c)
	if err != nil {
		return err
	}
	return s.broker.use(ctx, func(p *provider.Provider) error {
		n := 0
		missing, more, err := s.each(ctx, c, p, operands, func(letter *provider.DeadLetter) error {
			page := pageOf(letter, schema)
			if *s.format == "json" {
				return c.JSONLine(page)
			}
			if n++; n > 1 {
				fmt.Fprintln(c.Out)
			}
			return s.page(c.Out, page)
		})
		if err != nil {
			return err
		}
		return s.end(c, missing, more)
	})
}

// page prints a letter.
func (s *showing) page(w io.Writer, p letterPage) error {
	t := table{}
	line := func(name, text string) {
		if text != "" {
			t.row(name, clean(text))
		}
	}
	line("address", p.Address)
	line("job", p.Job)
	line("task", p.Task)
	line("queue", p.Queue)
	line("died", s.when(&p.DiedAt))
	line("class", p.Class)
	line("reason", p.Reason)
	line("worker", p.Worker)
	line("enqueued", s.when(p.EnqueuedAt))
	if p.FirstDueAt != nil && !p.FirstDueAt.Equal(*p.EnqueuedAt) {
		line("first due", s.when(p.FirstDueAt))
	}
	if p.Format > 0 {
		line("counters", p.Counters.String())
	}
	line("ordering key", p.OrderingKey)
	line("dedupe key", p.Dedupe.Key)
	line("requires", strings.Join(p.Requires, ", "))
	line("made by", p.Parent)
	line("edge", p.Edge)
	line("chain", p.Root)
	line("correlation", p.Correlation)
	line("trace", p.Trace)
	line("actor", p.Actor)
	line("tenant", p.Tenant)
	for _, key := range slices.Sorted(maps.Keys(p.Headers)) {
		line("header", key+": "+p.Headers[key])
	}
	for _, r := range p.Replayed {
		line("replayed", fmt.Sprintf("%s, after %s and %s", s.when(r.At), count(int(r.Failures), "failure"), crashes(r.Crashes)))
	}
	if p.Format > provider.Format {
		line("format", newer(&provider.Job{Format: p.Format}))
	}
	if err := t.write(w, ""); err != nil {
		return err
	}
	if err := s.history(w, p.History); err != nil {
		return err
	}
	return p.Payload.write(w)
}

func (s *showing) when(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.Format(time.RFC3339) + " (" + age(s.broker.now().Sub(*at)) + " ago)"
}

// String says how a job has fared, without what never happened.
func (c countersRow) String() string {
	parts := []string{count(int(c.Failures), "failure")}
	if c.Crashes > 0 {
		parts = append(parts, crashes(c.Crashes))
	}
	if c.Snoozes > 0 {
		parts = append(parts, count(int(c.Snoozes), "snooze"))
	}
	if c.Parks > 0 {
		parts = append(parts, "parked "+count(int(c.Parks), "time"))
	}
	return strings.Join(parts, ", ")
}

func crashes(n int32) string {
	if n == 1 {
		return "1 crash"
	}
	return fmt.Sprintf("%d crashes", n)
}

// history prints the last failures, oldest first, with their details.
func (s *showing) history(w io.Writer, failures []failureRow) error {
	var b strings.Builder
	for i, f := range failures {
		if i == 0 {
			b.WriteString("\nlast failures, oldest first:\n")
		}
		attempt := ""
		if f.Attempt > 0 {
			attempt = fmt.Sprintf("attempt %d, ", f.Attempt)
		}
		fmt.Fprintf(&b, "  %s, %s%s, by %s: %s\n", s.when(f.At), attempt, clean(f.Class), clean(f.Worker), clean(f.Reason))
		if f.Detail == "" {
			continue
		}
		for _, line := range cleanLines(f.Detail) {
			b.WriteString(strings.TrimRight("    "+line, " ") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// write prints what may be seen of a payload.
func (p payloadRow) write(w io.Writer) error {
	fmt.Fprintf(w, "\npayload: %s, sha256 %s\n", count(p.Bytes, "byte"), p.SHA256)
	if p.Codec != "" {
		fmt.Fprintf(w, "  codec %s, key %s\n", clean(p.Codec), clean(p.KeyID))
	}
	if p.Note != "" {
		fmt.Fprintf(w, "  not shown: %s\n", clean(p.Note))
	}
	if p.Value == nil {
		return nil
	}
	var b bytes.Buffer
	if err := json.Indent(&b, p.Value, "  ", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "  %s %s\n", p.Message, jsonEscaped(b.String()))
	return err
}
