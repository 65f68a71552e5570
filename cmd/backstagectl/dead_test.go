package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/backstage-go/backstage/cmd/backstagectl/internal/ctltest"
	"github.com/backstage-go/backstage/codegen/compile"
	"github.com/backstage-go/backstage/internal/command/transcript"
	"github.com/backstage-go/backstage/runtime/provider"
)

func TestAnIDThatMeansTwoThingsIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bury(ctltest.Job("A-1"))
	address := r.addresses()["A-1"]
	r.bury(ctltest.Job(address))
	r.want(r.ctl("dead", "replay", address, "-yes"), 1,
		"!"+fmt.Sprintf("%q is the address of one dead letter and the job of another; write address:%s or job:%s", address, address, address))
	if n := r.depth("orders"); n != 0 {
		t.Errorf("%d jobs were replayed", n)
	}
	r.want(r.ctl("dead", "show", "address:"+address), 0, "\njob       A-1\n")
	r.want(r.ctl("dead", "show", "job:"+address), 0, "\njob       "+address+"\n")
}

// A few ids are looked up one by one, many in one pass over all letters.
func TestManyIDsFromStandardInput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bury(ctltest.Jobs(150)...)
	var ids, want []string
	for i, address := range []string{"A-007", "A-140", r.addresses()["A-070"]} {
		ids = append(ids, address)
		want = append(want, []string{"A-007", "A-140", "A-070"}[i])
	}
	for i := 1; i <= 150; i += 3 {
		if id := fmt.Sprintf("A-%03d", i); i != 7 && i != 70 {
			ids, want = append(ids, id), append(want, id)
		}
	}
	r.stdin = strings.Join(ids, "\r\n") + "\nnowhere"
	got := r.ctl("dead", "list", "-ids", "-", "-limit", "0")
	r.want(got, 1, fmt.Sprintf("!standard input:%d: \"nowhere\": there is no such dead letter\n", len(ids)+1))
	var jobs []string
	for line := range strings.Lines(got.Stdout) {
		if fields := strings.Fields(line); fields[0] != "ADDRESS" {
			jobs = append(jobs, fields[6])
		}
	}
	if strings.Join(jobs, " ") != strings.Join(want, " ") {
		t.Errorf("listed\n%v\nwant\n%v", jobs, want)
	}
	r.want(r.ctl("dead", "replay", "-ids", "-", "-yes", "-rate", "0"), 0, fmt.Sprintf("replayed   %d\n", len(want)), "gone        1")
	if n := r.depth("orders"); n != int64(len(want)) {
		t.Errorf("%d jobs are in the queue, want %d", n, len(want))
	}
}

// One life of dead letters, on every broker.
func TestDeadLettersOnEveryBroker(t *testing.T) {
	t.Parallel()
	for name, newRig := range rigs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			keyed := ctltest.Job("K-1")
			keyed.Queue, keyed.Dedupe = "keys", provider.Dedupe{Key: "k", UntilDone: true}
			r.bury(ctltest.Jobs(120)...)
			r.bury(keyed)
			keyed.ID = "K-2"
			if s := r.p.Jobs.Publish(t.Context(), []provider.Job{keyed}, provider.PublishOptions{}); s[0].Outcome != provider.OutcomeStored {
				t.Fatal(s)
			}
			r.want(r.ctl("stats", "orders", "keys", "-o", "json"), 0,
				`"queue":"orders","depth":0,"oldest_ready_seconds":0,"in_flight":0,"held":0,"dead":120,`, `"queue":"keys","depth":1,`, `"dead":1,`)
			r.want(r.ctl("dead", "list", "-queue", "keys"), 0, " keys ", " K-1 ", "card declined")
			address := r.addresses()["A-007"]
			for _, id := range []string{address, "A-007", "job:A-007", "address:" + address} {
				r.want(r.ctl("dead", "show", id, "-o", "json"), 0, `{"address":"`+address+`","job":"A-007",`, `"failures":5`)
			}
			r.want(r.ctl("dead", "show", "0", "nowhere", "x@orders"), 1, `!"0": there is no such dead letter`, `!"nowhere": there`, `!"x@orders": there`)
			r.want(r.ctl("dead", "discard", address, "-yes"), 0, "discarded  1\n")
			r.want(r.ctl("dead", "replay", "-all", "-yes", "-rate", "0"), 0, "replayed   119\n", "duplicate    1 ", "its key is held by job K-2")
			r.want(r.ctl("dead", "replay", address, "A-008", "-yes"), 0, "replayed   0\n", "gone       2 ")
			if n := r.depth("orders"); n != 119 {
				t.Errorf("%d jobs are in their queue, want 119", n)
			}
		})
	}
}

// What a file of ids may have is not only what people write.
func TestAFileOfIDsThatIsNone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bury(ctltest.Job("A-1"))
	for text, want := range map[string]string{
		"\ufeffA-1\n":                         "",
		"  A-1\t\r\n":                         "",
		"A-1\x00\n":                           "has characters that no id has",
		"\x1b[2JA-1":                          "has characters that no id has",
		strings.Repeat("x", 5000):             "5000 bytes are too many for an id",
		strings.Repeat("x", 2<<20):            "standard input:1: bufio.Scanner: token too long",
		"A-1\n\n" + strings.Repeat("y", 1025): "standard input:3: 1025 bytes are too many",
	} {
		r.stdin = text
		got := r.ctl("dead", "replay", "-ids", "-")
		if want == "" {
			r.want(got, 0, "to replay: 1 dead letter")
		} else {
			r.want(got, 2, "!"+want)
		}
	}
}

func TestPayloadsByADescriptorSet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	transcript.Put(t, r.dir, "proto/shop/v1/t.proto", `syntax = "proto3"; package shop.v1; import "google/protobuf/empty.proto";
service OrderTasks { rpc Charge(Order) returns (google.protobuf.Empty); }
message Order { string id = 1; Card card = 2; }
message Card { string number = 1 [debug_redact = true]; }`)
	set, found, err := compile.Descriptors(t.Context(), []string{filepath.Join(r.dir, "proto")}, nil)
	if err != nil || len(found) > 0 {
		t.Fatal(err, found)
	}
	b, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(r.dir, "image.binpb")
	if err := os.WriteFile(image, b, 0o600); err != nil {
		t.Fatal(err)
	}
	card := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "SECRET")
	job := ctltest.Job("A-1")
	job.Payload = protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), card)
	r.bury(job)
	for format, want := range map[string]string{"text": "\"number\": \"[redacted]\"", "json": `"value":{"card":{"number":"[redacted]"}}`} {
		got := r.ctl("dead", "show", "A-1", "-schema", image, "-o", format)
		r.want(got, 0, want)
		if strings.Contains(got.String(), "SECRET") {
			t.Errorf("a secret is shown:\n%s", got)
		}
	}
}

// Without a schema nothing of a payload is printed, by no command and in no format.
func TestWithoutASchemaNoByteIsPrinted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	job := ctltest.Job("A-1")
	job.Payload = []byte("SECRET")
	r.bury(job)
	journal := filepath.Join(r.dir, "journal")
	for _, words := range [][]string{
		{"dead", "list"}, {"dead", "show", "A-1"}, {"dead", "replay", "-all", "-journal", journal}, {"dead", "list", "-url", "odd:unknown"},
		{"dead", "show", "-url", "odd:unknown", "-queue", "orders"}, {"dead", "replay", "-journal", journal, "-yes"},
	} {
		for _, format := range []string{"text", "json"} {
			got := r.ctl(append(words, "-o", format)...)
			r.want(got, 0)
			for _, form := range []string{"SECRET", "U0VDUkVU", "534543524554"} {
				if strings.Contains(got.String(), form) {
					t.Errorf("%v: %s is shown:\n%s", words, form, got)
				}
			}
		}
	}
}

func TestAPasswordIsNowhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.url = "odd://shop:secret@host/unknown?sentinel_password=secret"
	journal := filepath.Join(r.dir, "journal")
	for _, c := range []struct {
		words []string
		code  int
	}{
		{[]string{"dead", "replay", "-all", "-journal", journal}, 0},
		{[]string{"dead", "replay", "-journal", journal, "-yes"}, 1},
		{[]string{"dead", "replay", "-journal", journal, "-o", "json"}, 0},
		{[]string{"dead", "discard", "-all", "-yes"}, 1},
		{[]string{"dead", "replay", "-journal", journal, "-url", "odd://shop:secret@other/unknown"}, 2},
		{[]string{"stats", "-url", "odd:loud"}, 1},
	} {
		got := r.ctl(c.words...)
		r.want(got, c.code)
		if strings.Contains(got.String(), "secret") {
			t.Errorf("%v prints the password:\n%s", c.words, got)
		}
	}
	if text, err := os.ReadFile(journal); err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("the journal (%v):\n%s", err, text)
	}
}
