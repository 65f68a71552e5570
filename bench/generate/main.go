// Command generate measures how long it takes to generate the code of many
// schemas, as backstage generate does, in this process: to find, parse, compile
// and check them, to generate the messages' code and the tasks', and to write it.
//
//	go run ./generate -schemas 300
//
// The schemas are made for it in a temporary module: each is a package of its own
// with one task service of three tasks, with policies, keys and steps, some of
// them into the package before. Beside it, in the same round, stands what
// protoc-gen-go's part of it takes alone (compile and generate the messages), and
// a second run, which finds everything up to date. The median of the rounds
// counts. Garbage is collected as seldom as the command does it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/backstage-go/backstage/codegen/compile"

	"github.com/backstage-go/backstage/bench/internal/measure"
)

// plan is what is measured.
type plan struct{ rounds, schemas int }

func main() {
	var p plan
	flag.IntVar(&p.rounds, "rounds", 5, "rounds")
	flag.IntVar(&p.schemas, "schemas", 300, "schemas")
	profile := flag.String("cpuprofile", "", "write a processor profile to this file")
	flag.Parse()

	debug.SetGCPercent(200) // as cmd/backstage has it
	stop, err := measure.Profile(*profile)
	if err == nil {
		defer stop()
		_, err = p.run(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// round is what was measured side by side.
type round struct{ messages, all, again measure.Sample }

func (r round) ratio() float64 { return r.all.Wall.Seconds() / r.messages.Wall.Seconds() }

func (p plan) run(out io.Writer) ([]round, error) {
	fmt.Fprintln(out, measure.Machine())
	// All is removed at the end: a file system may take its time for new folders
	// while it remembers those that were removed.
	dir, remove, err := measure.Dir("")
	if err != nil {
		return nil, err
	}
	defer remove()
	var rounds []round
	for i := range p.rounds {
		r, err := p.round(filepath.Join(dir, fmt.Sprint("round", i)))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "round %d: messages alone %v   all %v (%v CPU)   again %v   ratio %.2f\n", i+1,
			short(r.messages.Wall), short(r.all.Wall), short(r.all.CPU), short(r.again.Wall), r.ratio())
		rounds = append(rounds, r)
	}
	seconds := func(s measure.Sample) float64 { return s.Wall.Seconds() }
	fmt.Fprintf(out, "median of %d schemas: messages alone %.2f s   all %.2f s   again %.2f s   ratio %.2f\n", p.schemas,
		measure.MedianOf(rounds, func(r round) float64 { return seconds(r.messages) }),
		measure.MedianOf(rounds, func(r round) float64 { return seconds(r.all) }),
		measure.MedianOf(rounds, func(r round) float64 { return seconds(r.again) }),
		measure.MedianOf(rounds, round.ratio))
	return rounds, nil
}

func short(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// round measures a module of its own.
func (p plan) round(dir string) (r round, err error) {
	if err := writeModule(dir, p.schemas); err != nil {
		return r, err
	}
	if r.messages, err = measure.Take(p.schemas, func() error { return messages(dir) }); err != nil {
		return r, err
	}
	if r.all, err = measure.Take(p.schemas, func() error { return all(dir, 2*p.schemas) }); err != nil {
		return r, err
	}
	r.again, err = measure.Take(p.schemas, func() error { return all(dir, 0) })
	return r, err
}

// messages is the part of protoc-gen-go.
func messages(dir string) error {
	project, err := load(dir)
	if err != nil {
		return err
	}
	_, err = project.GenerateMessages()
	return err
}

// all is backstage generate. It fails unless it writes that many files.
func all(dir string, want int) error {
	project, err := load(dir)
	if err != nil {
		return err
	}
	files, err := project.Generate()
	if err != nil {
		return err
	}
	changes, err := project.Write(files)
	if err != nil {
		return err
	}
	if got := len(changes.Written); got != want {
		return fmt.Errorf("%d files were written, want %d", got, want)
	}
	return nil
}

func load(dir string) (*compile.Project, error) {
	project, err := compile.Load(context.Background(), compile.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	if errs := project.Diagnostics.Errors(); errs != nil {
		return nil, errs
	}
	return project, nil
}

// writeModule makes a module of schemas.
func writeModule(dir string, schemas int) error {
	if err := write(filepath.Join(dir, "go.mod"), "module example.com/shop\n\ngo 1.26.0\n"); err != nil {
		return err
	}
	for n := range schemas {
		name := filepath.Join(dir, "proto", "shop", fmt.Sprintf("area%d", n), "v1", "tasks.proto")
		if err := write(name, schema(n)); err != nil {
			return err
		}
	}
	return nil
}

func write(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// schema returns one schema. Every fourth has a step into the one before it.
func schema(n int) string {
	imported, step := "", ""
	if n%4 == 3 {
		imported = fmt.Sprintf("import \"shop/area%d/v1/tasks.proto\";\n", n-1)
		step = fmt.Sprintf("\n      then: \"shop.area%d.v1.AreaTasks.Notify\"", n-1)
	}
	return fmt.Sprintf(template, n, imported, n, n, step)
}

const template = `syntax = "proto3";

package shop.area%d.v1;

import "backstage/v1/options.proto";
import "google/protobuf/empty.proto";
import "google/protobuf/timestamp.proto";
%s
option go_package = "example.com/shop/gen/shop/area%d/v1;areav1";

// AreaTasks is what happens after a customer presses "buy" in area %d.
// buf:lint:ignore SERVICE_SUFFIX
service AreaTasks {
  option (backstage.v1.defaults) = {
    queue: "orders"
    timeout: "30s"
    max_attempts: 5
  };

  // Charge takes the money for one order, once.
  rpc Charge(ChargeRequest) returns (google.protobuf.Empty) {
    option (backstage.v1.task) = {
      max_attempts: 8
      backoff: "1s..5m"
      dedupe: "order/{order.id}"
      dedupe_for: "24h"
      then: "Notify"
      then: "Ship"%s
    };
  }

  // Notify mails the receipt.
  rpc Notify(NotifyRequest) returns (google.protobuf.Empty) {
    option (backstage.v1.task) = {queue: "mail"};
  }

  // Ship books a parcel.
  rpc Ship(ShipRequest) returns (google.protobuf.Empty) {
    option (backstage.v1.task) = {ordering_key: "customer/{customer_id}"};
  }
}

// Order is what somebody bought.
message Order {
  // ID is the order's number.
  string id = 1;
  // Lines are what is in it.
  repeated Line lines = 2;
  google.protobuf.Timestamp placed = 3;
}

// Line is one article.
message Line {
  string sku = 1;
  int32 quantity = 2;
  int64 cents = 3;
}

// Status is where an order stands.
enum Status {
  STATUS_UNSPECIFIED = 0;
  STATUS_PAID = 1;
  STATUS_SHIPPED = 2;
}

// ChargeRequest is the order to charge.
message ChargeRequest {
  Order order = 1;
  string card_token = 2;
}

// NotifyRequest is whom to tell what.
message NotifyRequest {
  string order_id = 1;
  Status status = 2;
  map<string, string> words = 3;
}

// ShipRequest is what to send where.
message ShipRequest {
  string order_id = 1;
  int64 customer_id = 2;
  oneof to {
    string address = 3;
    string pickup_point = 4;
  }
}
`
