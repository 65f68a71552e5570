package peers_test

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/backstage-go/backstage/codegen/compile"
	ordersv1 "github.com/backstage-go/backstage/golden/peers/shop/orders/v1"
	"github.com/backstage-go/backstage/golden/peers/shop/orders/v1/ordersv1connect"
	"github.com/backstage-go/backstage/golden/peers/shop/orders/v1/ordertasks"
	"github.com/backstage-go/backstage/schema"
)

var update = flag.Bool("update", false, "rewrite what the three generators write")

const module = "github.com/backstage-go/backstage/golden/peers/"

// The peers run over every schema, task services included, as they do for a
// user who leaves nothing out.
func TestThreeGeneratorsRunOverOneModule(t *testing.T) {
	t.Parallel()
	project, err := compile.Load(t.Context(), compile.Options{Roots: []string{"proto"}})
	if err != nil {
		t.Fatal(err)
	}
	files, err := project.Generate()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range files {
		want[f.Name] = f.Content
	}
	for _, peer := range []string{"google.golang.org/grpc/cmd/protoc-gen-go-grpc", "connectrpc.com/connect/cmd/protoc-gen-connect-go"} {
		for _, f := range ask(t, peer, project.Request()).File {
			want[strings.TrimPrefix(f.GetName(), module)] = f.GetContent()
		}
	}
	if *update {
		rewrite(t, want)
	}
	if diff := cmp.Diff(committed(t), want); diff != "" {
		t.Errorf("generated code is not what is committed (-committed +generated); rewrite it with: go test . -update\n%s", diff)
	}
}

// ask runs a plugin as protoc does.
func ask(t *testing.T, pkg string, request *pluginpb.CodeGeneratorRequest) *pluginpb.CodeGeneratorResponse {
	t.Helper()
	in, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command("go", "run", pkg)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", pkg, err, stderr.String())
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(out, response); err != nil || response.Error != nil {
		t.Fatalf("%s: %v %s", pkg, err, response.GetError())
	}
	return response
}

func committed(t *testing.T) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := fs.WalkDir(os.DirFS("."), "shop", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		tree[name] = strings.ReplaceAll(string(text), "\r\n", "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func rewrite(t *testing.T, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAllOfItIsVetted(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("go", "vet", "./...").CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}

func TestBufFindsNothingToSay(t *testing.T) {
	t.Parallel()
	buf, err := exec.LookPath("buf")
	if err != nil {
		t.Skip("no buf on PATH")
	}
	dir := t.TempDir()
	for _, err := range []error{
		os.CopyFS(filepath.Join(dir, "proto"), os.DirFS("proto")),
		os.CopyFS(filepath.Join(dir, "options"), schema.Files),
		os.Remove(filepath.Join(dir, "options", "backstage", "v1", "record.proto")),
		os.WriteFile(filepath.Join(dir, "buf.yaml"), []byte(bufYAML), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"lint"}, {"format", "-d", "--exit-code"}} {
		cmd := exec.Command(buf, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("buf %v: %v\n%s", args, err, out)
		}
	}
}

const bufYAML = `version: v2
modules:
  - path: proto
  - path: options
lint:
  use: [STANDARD]
  rpc_allow_google_protobuf_empty_requests: true
  rpc_allow_google_protobuf_empty_responses: true
`

// One program uses all three.
func TestTheThreeAreUsedTogether(t *testing.T) {
	t.Parallel()
	server := grpc.NewServer()
	ordersv1.RegisterOrderServiceServer(server, ordersv1.UnimplementedOrderServiceServer{})
	path, _ := ordersv1connect.NewOrderServiceHandler(ordersv1connect.UnimplementedOrderServiceHandler{}, connect.WithReadMaxBytes(1))
	job := ordertasks.ChargeCardJob(&ordersv1.ChargeCardRequest{Order: &ordersv1.Order{OrderId: "A-1"}})
	if got, want := path, "/shop.orders.v1.OrderService/"; got != want {
		t.Errorf("connect serves %s, want %s", got, want)
	}
	if got, want := job.DedupeKey(), "shop.orders.v1.OrderTasks.ChargeCard:order/A-1"; got != want {
		t.Errorf("the job's dedupe key is %q, want %q", got, want)
	}
	if services := server.GetServiceInfo(); len(services) != 1 {
		t.Errorf("gRPC serves %v, want OrderService alone", services)
	}
}
