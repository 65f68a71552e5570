package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// outside returns a folder that is in no module, for tests that build there.
func outside(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds a module of its own")
	}
	return t.TempDir()
}

// root returns the folder of this checkout.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// goes runs the go tool in a folder, and fails the test with its output.
func goes(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// What the documentation says to do in a module of one's own.
func TestGoGenerateInAConsumersModule(t *testing.T) {
	t.Parallel()
	dir := outside(t)
	put(t, dir, "go.mod", "module example.com/consumer\n\ngo 1.26.0\n\ntool "+toolPath+
		"\n\nrequire "+modulePath+" v0.0.0\n\nreplace "+modulePath+" => "+root(t)+"\n")
	put(t, dir, "api/greet/v1/greet_tasks.proto", `syntax = "proto3";

package greet.v1;

import "backstage/v1/options.proto";
import "google/protobuf/empty.proto";

option go_package = "example.com/consumer/internal/greet;greet";

service Tasks {
  rpc Hello(HelloRequest) returns (google.protobuf.Empty) {
    option (backstage.v1.task) = {then: "Bye"};
  }
  rpc Bye(HelloRequest) returns (google.protobuf.Empty);
}

message HelloRequest {
  string name = 1;
}
`)
	put(t, dir, "internal/generate.go", "package internal\n\n//go:generate go tool backstage generate\n")
	put(t, dir, "greeter.go", `package consumer

import (
	"context"
	"fmt"
	"io"

	"example.com/consumer/internal/greet"
	"example.com/consumer/internal/greet/tasks"
)

type greeter struct{ out io.Writer }

func (g greeter) Hello(_ context.Context, in *greet.HelloRequest, next *tasks.HelloNext) error {
	next.Bye(in)
	_, err := fmt.Fprintln(g.out, "hello", in.GetName())
	return err
}

func (g greeter) Bye(_ context.Context, in *greet.HelloRequest) error {
	_, err := fmt.Fprintln(g.out, "bye", in.GetName())
	return err
}
`)
	put(t, dir, "greeter_test.go", `package consumer

import (
	"strings"
	"testing"

	backstage "github.com/backstage-go/backstage/runtime"
	"github.com/backstage-go/backstage/runtime/backstagetest"

	"example.com/consumer/internal/greet"
	"example.com/consumer/internal/greet/tasks"
)

func TestGreeting(t *testing.T) {
	var out strings.Builder
	h := backstagetest.New(t, func(w *backstage.Worker) { tasks.Register(w, greeter{&out}) })
	client, err := tasks.NewClient(h.Client)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Hello(t.Context(), &greet.HelloRequest{Name: "Ada"}); err != nil {
		t.Fatal(err)
	}
	h.Drain()
	if out.String() != "hello Ada\nbye Ada\n" {
		t.Errorf("got %q", out.String())
	}
}
`)
	goes(t, dir, "mod", "tidy", "-e") // what is not generated yet is missing
	if out := goes(t, dir, "generate", "./..."); !strings.Contains(out, "wrote") {
		t.Errorf("go generate wrote nothing:\n%s", out)
	}
	goes(t, dir, "mod", "tidy")
	goes(t, dir, "build", "./...")
	goes(t, dir, "vet", "./...")
	goes(t, dir, "test", "./...")
	if out := goes(t, dir, "generate", "./..."); out != "" {
		t.Errorf("a second go generate is not quiet:\n%s", out)
	}
}

// What a newcomer does: init, test, run.
func TestAFirstProjectWorks(t *testing.T) {
	t.Parallel()
	dir := outside(t)
	if got := backstage(t, dir, "init", "shop"); got.Code != exitOK {
		t.Fatalf("init: %+v", got)
	}
	shop := filepath.Join(dir, "shop")
	if out := goes(t, shop, "generate", "./..."); out != "" {
		t.Errorf("init did not generate all:\n%s", out)
	}
	goes(t, shop, "vet", "./...")
	goes(t, shop, "test", "./...")
	if out := goes(t, shop, "run", "cmd/gofmt", "-l", "."); out != "" {
		t.Errorf("not formatted:\n%s", out)
	}
	if runtime.GOOS != "windows" { // which cannot be told to interrupt a process
		seeItWork(t, shop)
	}
	lint(t, shop)
}

// seeItWork runs the project's program until its last mail is out, and stops it.
func seeItWork(t *testing.T, dir string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "shop")
	goes(t, dir, "build", "-o", program, ".")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		printed.WriteString(lines.Text() + "\n")
		if strings.Count(printed.String(), "is mailed to ada@example.com") == 3 {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the program: %v", err)
	}
	for _, want := range []string{"was asked for already, by job", "Stop with Ctrl-C", "the mail server is busy", "attempt 2"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("the program does not show %q:\n%s", want, printed.String())
		}
	}
}

// lint holds the project to buf's standard rules, and generates with buf what go
// generate generated, where there is a buf.
func lint(t *testing.T, dir string) {
	t.Helper()
	buf, err := exec.LookPath("buf")
	if err != nil {
		t.Log("no buf, so buf lint and buf generate were not tried")
		return
	}
	for _, args := range [][]string{{"lint"}, {"generate"}} {
		cmd := exec.CommandContext(t.Context(), buf, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("buf %v: %v\n%s", args, err, out)
		}
	}
	if got := backstage(t, dir, "generate", "-check"); got.Code != exitOK {
		t.Errorf("buf generate wrote something else than go generate: %+v", got)
	}
}
