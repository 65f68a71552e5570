package rules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/backstage-go/backstage"

// graph is packages by name: those of this module ("./runtime") and all that they
// reach in others.
type graph map[string]*node

// node is a package and what it imports; what its tests import comes apart.
type node struct {
	kind    string // tasks, messages or nothing
	imports []string
	tests   []string
}

func TestImportsKeepToTheHouse(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"linux", "darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			for _, violation := range check(list(t, system)) {
				t.Error(violation)
			}
		})
	}
}

// check returns what a graph violates, sorted.
func check(g graph) []string {
	var out []string
	for name, n := range g {
		if !own(name) {
			continue
		}
		rule := ruleOf(name, n.kind)
		if rule == nil {
			out = append(out, fmt.Sprintf("%s: no line of the table in imports_test.go says what it may import", name))
			continue
		}
		for _, imported := range n.imports {
			if !g.allowed(imported, rule.may) {
				out = append(out, fmt.Sprintf("%s imports %s: %s", name, imported, rule.because))
			}
		}
		for _, imported := range n.tests {
			if !own(imported) && !g.allowed(imported, rule.may) && !g.allowed(imported, testsMay) {
				out = append(out, fmt.Sprintf("a test of %s imports %s: %s", name, imported, testsBecause))
			}
		}
		for _, rule := range reachRules() {
			if !fits(name, n.kind, rule.packages) {
				continue
			}
			if way := g.way(name, rule.never); way != nil {
				out = append(out, fmt.Sprintf("%s: %s", strings.Join(way, " -> "), rule.because))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func ruleOf(name, kind string) *importRule {
	for i, rule := range importRules {
		if fits(name, kind, rule.packages) {
			return &importRules[i]
		}
	}
	return nil
}

func (g graph) allowed(imported string, may []string) bool {
	kind := ""
	if n := g[imported]; n != nil {
		kind = n.kind
	}
	return standard(imported) || slices.ContainsFunc(may, func(pattern string) bool { return fits(imported, kind, pattern) })
}

// way finds a shortest way from a package to one that it must never reach.
func (g graph) way(from string, never []string) []string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if g[at] == nil {
			continue
		}
		for _, next := range g[at].imports {
			if _, seen := before[next]; seen || standard(next) {
				continue
			}
			before[next] = at
			queue = append(queue, next)
			if !slices.ContainsFunc(never, func(pattern string) bool { return fits(next, "", pattern) }) {
				continue
			}
			var way []string
			for at := next; at != ""; at = before[at] {
				way = append(way, at)
			}
			slices.Reverse(way)
			return way
		}
	}
	return nil
}

func fits(name, kind, pattern string) bool {
	switch pattern {
	case anything:
		return true
	case messages, tasks:
		return kind == pattern
	}
	if folder, below := strings.CutSuffix(pattern, "/..."); below {
		return name == folder || strings.HasPrefix(name, folder+"/")
	}
	return name == pattern
}

func own(name string) bool { return name == "." || strings.HasPrefix(name, "./") }

func standard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return !own(name) && !strings.Contains(first, ".")
}

// list asks the go command for the packages of this module and all that they reach,
// as seen from a system. Packages that do not compile at the moment still say what
// they import.
func list(t *testing.T, system string) graph {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps",
		"-json=ImportPath,Standard,GoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	g := graph{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath                                  string
			Standard                                    bool
			GoFiles, Imports, TestImports, XTestImports []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Standard {
			continue
		}
		n := &node{imports: short(p.Imports)}
		if name := shorten(p.ImportPath); own(name) {
			n.kind = kindOf(name, p.GoFiles)
			n.tests = short(append(p.TestImports, p.XTestImports...))
		}
		g[shorten(p.ImportPath)] = n
	}
	if g["./internal/rules"] == nil {
		t.Fatalf("go list does not list this package, but %v", slices.Sorted(maps.Keys(g)))
	}
	return g
}

func kindOf(name string, files []string) string {
	if fits(name, "", "./schema/...") || len(files) == 0 {
		return ""
	}
	if slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, ".backstage.go") }) {
		return tasks
	}
	if !slices.ContainsFunc(files, func(f string) bool { return !strings.HasSuffix(f, ".pb.go") }) {
		return messages
	}
	return ""
}

func short(paths []string) []string {
	var out []string
	for _, path := range paths {
		out = append(out, shorten(path))
	}
	return out
}

func shorten(path string) string {
	if path == module {
		return "."
	}
	if below, ok := strings.CutPrefix(path, module+"/"); ok {
		return "./" + below
	}
	return path
}

// house is a sample graph for this test: a house with all its rooms, whether or not
// the repository has them.
const house = `
./schema                         embed
./schema/backstage/v1            google.golang.org/protobuf/proto
./templates                      embed
./codegen                        ./schema/backstage/v1 ./templates github.com/dave/jennifer/jen google.golang.org/protobuf/compiler/protogen
./codegen/compile                ./codegen ./schema github.com/bufbuild/protocompile
./cmd/protoc-gen-backstage       ./codegen
./cmd/backstage                  ./codegen/compile ./codegen ./templates ./internal/command
./cmd/backstagectl               ./providers ./runtime/provider ./codegen/compile ./internal/command
./runtime                        ./runtime/provider ./runtime/internal/heap context
./runtime/internal/heap          slices
./runtime/provider               ./schema/backstage/v1 google.golang.org/protobuf/proto
./runtime/provider/providertest  ./runtime/provider ./runtime
./runtime/backstagetest          ./runtime ./providers/memory github.com/google/go-cmp/cmp
./providers                      ./providers/memory ./providers/embedded ./providers/redisstreams ./providers/rabbitmq ./providers/kafka
./providers/memory               ./runtime/provider
./providers/internal/gate        sync
./providers/embedded             ./runtime/provider ./providers/internal/gate modernc.org/sqlite
./providers/redisstreams         ./runtime/provider github.com/redis/go-redis/v9
./providers/rabbitmq             ./runtime/provider github.com/rabbitmq/amqp091-go
./providers/kafka                ./runtime/provider github.com/segmentio/kafka-go ./providers/kafka/internal/tracker
./providers/kafka/internal/tracker sort
./golden/shop/v1                 (messages) ./schema/backstage/v1 google.golang.org/protobuf/proto
./golden/shop/v1/ordertasks      (tasks) ./runtime ./golden/shop/v1 google.golang.org/protobuf/types/known/emptypb
./golden/shop/v1/mailtasks       (tasks) ./runtime ./golden/shop/v1
./golden                         ./codegen/compile ./providers/memory
./examples/quickstart            ./providers/embedded ./runtime ./golden/shop/v1/ordertasks
./internal/brokers               os/exec github.com/twmb/franz-go/pkg/kfake
./internal/command               ./codegen
./internal/command/transcript    testing github.com/google/go-cmp/cmp golang.org/x/tools/txtar
./internal/scenario              ./providers ./runtime
./internal/rules                 testing
example.com/wrapper              github.com/redis/go-redis/v9
`

// build reads a graph, one package a line: its name, its kind if it has one, its
// imports; those of its tests after a bar.
func build(lines string) graph {
	g := graph{}
	for line := range strings.Lines(lines) {
		line, tests, _ := strings.Cut(line, "|")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		n := cmp.Or(g[words[0]], &node{})
		g[words[0]] = n
		for _, word := range words[1:] {
			if word == messages || word == tasks {
				n.kind = word
				continue
			}
			n.imports = append(n.imports, word)
		}
		n.tests = append(n.tests, strings.Fields(tests)...)
	}
	return g
}

func TestTheDesignedHouseIsAllowed(t *testing.T) {
	t.Parallel()
	g := build(house)
	for _, violation := range check(g) {
		t.Error(violation)
	}
	used := map[*importRule]bool{}
	for name, n := range g {
		used[ruleOf(name, n.kind)] = true
	}
	for i := range importRules {
		if !used[&importRules[i]] {
			t.Errorf("no package of the house is ruled by the line of %s", importRules[i].packages)
		}
	}
}

func TestAViolationIsSeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, line, want string }{
		{"the runtime knows a provider", "./runtime ./providers/memory", "./runtime imports ./providers/memory: "},
		{"the runtime knows the record", "./runtime ./schema/backstage/v1", "./runtime imports ./schema/backstage/v1: "},
		{"the runtime knows package providers", "./runtime ./providers", "./runtime imports ./providers: "},
		{"the contract knows the runtime", "./runtime/provider ./runtime", "./runtime/provider imports ./runtime: "},
		{"a provider knows the runtime", "./providers/kafka ./runtime", "./providers/kafka imports ./runtime: "},
		{"a provider knows another", "./providers/kafka ./providers/redisstreams", "./providers/kafka imports ./providers/redisstreams: "},
		{"a provider's inside knows another's", "./providers/kafka/internal/x ./providers/redisstreams/internal/y",
			"./providers/kafka/internal/x imports ./providers/redisstreams/internal/y: "},
		{"a provider has a second client", "./providers/memory modernc.org/sqlite", "./providers/memory imports modernc.org/sqlite: "},
		{"one provider brings in another's client", "./providers/kafka example.com/wrapper",
			"./providers/kafka -> example.com/wrapper -> github.com/redis/go-redis/v9: importing one provider"},
		{"the command knows a provider", "./cmd/backstage ./providers/embedded", "./cmd/backstage imports ./providers/embedded: "},
		{"the command brings in a client", "./codegen/compile example.com/wrapper",
			"./cmd/backstage -> ./codegen/compile -> example.com/wrapper -> github.com/redis/go-redis/v9: the command brings in no broker's client"},
		{"the generator knows its compiler", "./codegen ./codegen/compile", "./codegen imports ./codegen/compile: "},
		{"the generator knows the runtime", "./codegen ./runtime", "./codegen imports ./runtime: "},
		{"the plugin carries a compiler", "./cmd/protoc-gen-backstage ./codegen/compile", "./cmd/protoc-gen-backstage imports ./codegen/compile: "},
		{"the schema knows the contract", "./schema ./runtime/provider", "./schema imports ./runtime/provider: "},
		{"generated code knows the contract", "./golden/shop/v1/ordertasks ./runtime/provider", "./golden/shop/v1/ordertasks imports ./runtime/provider: "},
		{"generated code knows other generated code", "./golden/shop/v1/ordertasks ./golden/shop/v1/mailtasks",
			"./golden/shop/v1/ordertasks imports ./golden/shop/v1/mailtasks: "},
		{"generated code knows the language", "./golden/shop/v1/ordertasks ./schema/backstage/v1", "./golden/shop/v1/ordertasks imports ./schema/backstage/v1: "},
		{"messages know the runtime", "./golden/shop/v1 ./runtime", "./golden/shop/v1 imports ./runtime: "},
		{"code relies on what starts servers", "./providers/kafka ./internal/brokers", "./providers/kafka imports ./internal/brokers: "},
		{"a room that nobody ruled", "./misc fmt", "./misc: no line of the table"},
		{"a test with a library of its own", "./runtime | github.com/stretchr/testify/require", "a test of ./runtime imports github.com/stretchr/testify/require: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := check(build(house + c.line + "\n"))
			if !slices.ContainsFunc(got, func(v string) bool { return strings.HasPrefix(v, c.want) }) {
				t.Errorf("%s: got %q, want one that begins with %q", c.line, got, c.want)
			}
		})
	}
}

func TestTestsMayImportTheWholeHouse(t *testing.T) {
	t.Parallel()
	got := check(build(house + `
./providers/kafka   | ./runtime ./runtime/provider/providertest ./providers/redisstreams ./internal/brokers github.com/google/go-cmp/cmp
./runtime/provider  | ./runtime ./providers
`))
	for _, violation := range got {
		t.Error(violation)
	}
}
