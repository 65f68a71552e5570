package main

import (
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/backstage-go/backstage/cmd/backstagectl/internal/ctltest"
	"github.com/backstage-go/backstage/internal/command/transcript"
	"github.com/backstage-go/backstage/runtime/provider"
)

// update rewrites the transcripts: go test ./cmd/backstagectl -update.
var update = flag.Bool("update", false, "rewrite what commands print")

// The transcripts in testdata, each on a file of jobs of its own. Beside
// backstagectl's commands there are
//
//	job A-1 queue=mail …     a job that waits
//	bury A-1 reason='no' …   a job that dies
//
// $A-1 stands for the address of a job's dead letter, $A-1b for that of its second, $DIR
// for the folder. What is said in the commands to be "ago" is so from three days later
// on.
func TestCommandsPrintThis(t *testing.T) {
	t.Parallel()
	transcript.Run(t, *update, func(t *testing.T, dir string) transcript.Play {
		r := newRig(t)
		r.now = func() time.Time { return time.Now().Add(3*24*time.Hour + 30*time.Minute) }
		s := &stage{rig: r, files: dir, letters: map[string]string{}, names: map[string]string{}}
		return s.play
	})
}

// stage plays commands on a rig.
type stage struct {
	*rig
	files   string            // the archive's
	letters map[string]string // addresses, by name
	names   map[string]string // names, by address
}

func (s *stage) play(t *testing.T, words []string) string {
	t.Helper()
	for i := range words {
		words[i] = s.expand(words[i])
	}
	switch words[0] {
	case "job":
		job, _ := s.make(words[1:])
		if stored := s.p.Jobs.Publish(t.Context(), []provider.Job{job}, provider.PublishOptions{}); stored[0].Outcome != provider.OutcomeStored {
			t.Fatalf("%v: %+v", words, stored)
		}
		return ""
	case "bury":
		job, failure := s.make(words[1:])
		ctltest.Bury(t, s.p, failure, job)
		s.name()
		return ""
	}
	return s.collapse(s.ctl(words...).String())
}

// name gives new letters their names: A-1 for the first of job A-1, then A-1b.
func (s *stage) name() {
	for _, l := range slices.Backward(ctltest.Letters(s, s.p)) {
		if _, known := s.names[l.Address]; known {
			continue
		}
		name := l.Job.ID
		for s.letters[name] != "" {
			name += "b"
		}
		s.letters[name], s.names[l.Address] = l.Address, name
	}
}

// make returns a job and its failure, with what follows its id.
func (s *stage) make(words []string) (provider.Job, provider.Failure) {
	job, failure := ctltest.Job(words[0]), ctltest.Failed()
	job.Enqueued = time.Date(2025, 10, 31, 12, 0, 0, 0, time.UTC)
	job.FirstDue = job.Enqueued
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "queue":
			job.Queue = value
		case "task":
			job.Task = value
		case "key":
			job.Dedupe = provider.Dedupe{Key: value, UntilDone: true}
		case "order": // the field order_id, and pin, which is a secret
			job.Payload = protowire.AppendString(protowire.AppendTag(job.Payload, 1, protowire.BytesType), value)
			job.Payload = protowire.AppendString(protowire.AppendTag(job.Payload, 2, protowire.BytesType), "SECRET")
		case "payload":
			job.Payload = []byte(value)
		case "chain":
			job.Root, job.Parent, job.Edge = "R-1", "P-1", value
		case "class":
			failure.Class = value
		case "reason":
			failure.Message = value
		case "worker":
			failure.Worker = value
		default:
			s.Fatalf("bury: what is %q?", word)
		}
	}
	return job, failure
}

func (s *stage) expand(word string) string {
	word = strings.ReplaceAll(word, "$DIR", s.files)
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(s.letters))) {
		word = strings.ReplaceAll(word, "$"+id, s.letters[id])
	}
	return word
}

// collapse takes out of a text what is never twice the same.
func (s *stage) collapse(text string) string {
	for address, name := range s.names {
		cell := fmt.Sprintf("%-*s  ", len(address), "$"+name)
		text = strings.ReplaceAll(text, address+"  ", cell) // as wide as it was
		text = strings.ReplaceAll(text, address, "$"+name)
	}
	text = strings.ReplaceAll(text, s.url, "$URL")
	if here, err := filepath.Abs("."); err == nil {
		if files, err := filepath.Rel(here, s.files); err == nil {
			text = strings.ReplaceAll(text, files, "$DIR")
		}
	}
	text = strings.ReplaceAll(text, s.files, "$DIR")
	if filepath.Separator != '/' {
		text = strings.ReplaceAll(text, string(filepath.Separator), "/")
	}
	for _, odd := range [][2]string{
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`, "$$TIME"},
		{`\(\d+d\d+h ago\)`, "($$AGE)"},
		{`"oldest_(ready|dead)_seconds":0\.\d+`, `"oldest_${1}_seconds":$$SECONDS`},
		{`\b\d+(\.\d+)?ms\b`, "$$MS"},
		{`\bgo1\.\d+(\.\d+)?\b`, "$$GO"},
	} {
		text = regexp.MustCompile(odd[0]).ReplaceAllString(text, odd[1])
	}
	return text
}
