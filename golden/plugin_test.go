package golden_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/backstage-go/backstage/codegen"
	"github.com/backstage-go/backstage/schema"
)

// builds keeps the programs that tests have built, by package.
type builds struct {
	mu  sync.Mutex
	dir string
	exe map[string]string
}

var built builds

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "golden")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built.dir, built.exe = dir, map[string]string{}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// build compiles a command, once, and returns its path.
func build(t *testing.T, pkg string) string {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if exe := built.exe[pkg]; exe != "" {
		return exe
	}
	exe := filepath.Join(built.dir, filepath.Base(pkg)+".exe")
	if out, err := exec.Command("go", "build", "-o", exe, pkg).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	built.exe[pkg] = exe
	return exe
}

// ask runs a plugin as protoc does.
func ask(t *testing.T, exe string, request *pluginpb.CodeGeneratorRequest) *pluginpb.CodeGeneratorResponse {
	t.Helper()
	in, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(exe)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(exe), err, stderr.String())
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(out, response); err != nil {
		t.Fatal(err)
	}
	return response
}

// answered returns the files of a response by their name in this folder.
func answered(t *testing.T, response *pluginpb.CodeGeneratorResponse) map[string]string {
	t.Helper()
	if response.Error != nil {
		t.Fatalf("the plugin answers: %s", response.GetError())
	}
	tree := map[string]string{}
	for _, f := range response.File {
		tree[strings.TrimPrefix(f.GetName(), module+"/golden/")] = f.GetContent()
	}
	return tree
}

// only returns the files with a suffix.
func only(tree map[string]string, suffix string) map[string]string {
	out := map[string]string{}
	for name, text := range tree {
		if strings.HasSuffix(name, suffix) {
			out[name] = text
		}
	}
	return out
}

func TestPluginWritesWhatTheCommandWrites(t *testing.T) {
	t.Parallel()
	project := load(t)
	want := only(generate(t, project), ".backstage.go")
	got := answered(t, ask(t, build(t, module+"/cmd/protoc-gen-backstage"), project.Request()))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plugin and command differ (-command +plugin):\n%s", diff)
	}
}

func TestMessagesAreWhatProtocGenGoWrites(t *testing.T) {
	t.Parallel()
	project := load(t)
	want := answered(t, ask(t, build(t, "google.golang.org/protobuf/cmd/protoc-gen-go"), project.Request()))
	if diff := cmp.Diff(want, only(generate(t, project), ".pb.go")); diff != "" {
		t.Errorf("the command and protoc-gen-go differ (-protoc-gen-go +command):\n%s", diff)
	}
}

func TestPluginClaimsEditionsAndOptionalFields(t *testing.T) {
	t.Parallel()
	response := ask(t, build(t, module+"/cmd/protoc-gen-backstage"), load(t).Request())
	features := pluginpb.CodeGeneratorResponse_FEATURE_PROTO3_OPTIONAL | pluginpb.CodeGeneratorResponse_FEATURE_SUPPORTS_EDITIONS
	if response.GetSupportedFeatures() != uint64(features) {
		t.Errorf("supported features %b, want %b", response.GetSupportedFeatures(), features)
	}
	if response.GetMinimumEdition() != int32(descriptorpb.Edition_EDITION_PROTO2) || response.GetMaximumEdition() != int32(descriptorpb.Edition_EDITION_2024) {
		t.Errorf("editions %d to %d, want proto2 to 2024", response.GetMinimumEdition(), response.GetMaximumEdition())
	}
}

func TestPluginReportsEveryErrorAtOnceWithoutSources(t *testing.T) {
	t.Parallel()
	request := proto.CloneOf(load(t).Request())
	request.FileToGenerate = []string{"shop/orders/v1/orders_tasks.proto"}
	for _, f := range request.ProtoFile {
		if f.GetName() == "shop/orders/v1/orders_tasks.proto" {
			f.Service[0].Method[1].ServerStreaming = proto.Bool(true)
			f.Service[0].Method[2].OutputType = proto.String(".shop.orders.v1.ShipOrderRequest")
		}
	}
	response := ask(t, build(t, module+"/cmd/protoc-gen-backstage"), request)
	want := `shop/orders/v1/orders_tasks.proto:32:3: task SendReceipt: a task returns google.protobuf.Empty, not a stream
shop/orders/v1/orders_tasks.proto:37:44: task ShipOrder: a task returns google.protobuf.Empty, not shop.orders.v1.ShipOrderRequest: nobody waits for the answer of a job`
	if response.GetError() != want || len(response.File) > 0 {
		t.Errorf("the plugin answers %d files and\n%s\nwant none and\n%s", len(response.File), response.GetError(), want)
	}
}

// A compiler that leaves out source info leaves the file's name.
func TestPluginNamesTheFileWhereThereIsNoSourceInfo(t *testing.T) {
	t.Parallel()
	request := proto.CloneOf(load(t).Request())
	request.FileToGenerate = []string{"shop/mail/v1/mail_tasks.proto"}
	for _, f := range request.ProtoFile {
		f.SourceCodeInfo = nil
		if f.GetName() == "shop/mail/v1/mail_tasks.proto" {
			f.Service[0].Method[0].ClientStreaming = proto.Bool(true)
		}
	}
	got := ask(t, build(t, module+"/cmd/protoc-gen-backstage"), request).GetError()
	if want := "shop/mail/v1/mail_tasks.proto: task Send: a task takes one request, not a stream"; got != want {
		t.Errorf("the plugin answers %q, want %q", got, want)
	}
}

// buf runs a plugin once for each directory.
func TestPluginWritesTheSameFileByFile(t *testing.T) {
	t.Parallel()
	project := load(t)
	want := only(generate(t, project), ".backstage.go")
	got := map[string]string{}
	for _, name := range project.Request().FileToGenerate {
		request := proto.CloneOf(project.Request())
		request.FileToGenerate = []string{name}
		b, err := proto.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := proto.Unmarshal(b, request); err != nil {
			t.Fatal(err)
		}
		gen, err := protogen.Options{}.New(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := codegen.Generate(gen); err != nil {
			t.Fatal(err)
		}
		maps.Copy(got, answered(t, gen.Response()))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("all files at once and one by one differ (-at once +one by one):\n%s", diff)
	}
}

func TestPluginTakesTheParametersOfProtocGenGoAndNoOthers(t *testing.T) {
	t.Parallel()
	exe := build(t, module+"/cmd/protoc-gen-backstage")
	request := proto.CloneOf(load(t).Request())
	request.FileToGenerate = []string{"shop/orders/v1/orders_tasks.proto"}
	const name = "ordertasks/tasks.backstage.go"
	for parameter, want := range map[string]string{
		"":                      module + "/golden/shop/orders/v1/" + name,
		"paths=import":          module + "/golden/shop/orders/v1/" + name,
		"paths=source_relative": "shop/orders/v1/" + name,
		"module=" + module:      "golden/shop/orders/v1/" + name,
		"Mshop/orders/v1/orders_tasks.proto=example.com/x;y": "example.com/x/" + name,
		"Morders_tasks.proto=example.com/x;y":                module + "/golden/shop/orders/v1/" + name,
		"annotate_code":                                      module + "/golden/shop/orders/v1/" + name,
	} {
		request.Parameter = proto.String(parameter)
		response := ask(t, exe, request)
		if response.Error != nil || response.File[0].GetName() != want {
			t.Errorf("parameter %q writes %v (%s), want %s", parameter, response.File, response.GetError(), want)
		}
		if parameter == "annotate_code" && len(response.File) != 2 {
			t.Errorf("annotate_code writes %d files, want the code and what maps it to the schema", len(response.File))
		}
	}
	request.Parameter = proto.String("paths=import,colour=red")
	in, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `unknown parameter "colour"`) {
		t.Errorf("an unknown parameter gives %v and %q", err, out)
	}
}

func TestPluginAnswersPeople(t *testing.T) {
	t.Parallel()
	exe := build(t, module+"/cmd/protoc-gen-backstage")
	for flag, want := range map[string]string{"--version": "protoc-gen-backstage ", "--help": "backstage generate"} {
		out, err := exec.Command(exe, flag).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %q, want %q", flag, err, out, want)
		}
	}
	if out, err := exec.Command(exe, "shop.proto").CombinedOutput(); err == nil {
		t.Errorf("an argument is accepted: %s", out)
	}
}

// protoc of the system may be too old for editions.
func TestProtocWritesWhatTheCommandWrites(t *testing.T) {
	t.Parallel()
	protoc, err := exec.LookPath("protoc")
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("no protoc on PATH")
	}
	out, options := t.TempDir(), t.TempDir()
	if err := os.CopyFS(options, schema.Files); err != nil {
		t.Fatal(err)
	}
	files := []string{
		"shop/orders/v1/orders_tasks.proto", "shop/mail/v1/mail_tasks.proto", "shop/chain/v1/chain_tasks.proto",
		"shop/chain/v1/other_tasks.proto", "keys/v1/keys_tasks.proto", "keys/proto2/keys_tasks.proto",
		"odd/text/v1/text_tasks.proto", "odd/names/v1/names_tasks.proto", "odd/acme/backstage/v1/acme_tasks.proto",
	}
	args := append([]string{
		"-I", "proto", "-I", options, "--experimental_allow_proto3_optional",
		"--plugin=protoc-gen-backstage=" + build(t, module+"/cmd/protoc-gen-backstage"),
		"--backstage_out=" + out, "--backstage_opt=module=" + module + "/golden",
	}, files...)
	if text, err := exec.Command(protoc, args...).CombinedOutput(); err != nil {
		t.Fatalf("protoc: %v\n%s", err, text)
	}
	want := only(generate(t, load(t)), ".backstage.go")
	got := map[string]string{}
	for name := range want {
		if text, err := os.ReadFile(filepath.Join(out, name)); err == nil {
			got[name] = string(text)
		} else {
			delete(want, name)
		}
	}
	if len(got) < 15 {
		t.Errorf("protoc wrote only %d packages", len(got))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("protoc and the command differ (-command +protoc):\n%s", diff)
	}
}

func TestOutputIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	want := generate(t, load(t))
	for range 20 {
		if diff := cmp.Diff(want, generate(t, load(t))); diff != "" {
			t.Fatalf("two runs differ (-first +later):\n%s", diff)
		}
	}
}
