package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/backstage-go/backstage/codegen"
	"github.com/backstage-go/backstage/codegen/compile"
)

// TestMain lets the test program be the plugin, when it is called by that name.
func TestMain(m *testing.M) {
	if isPlugin(os.Args[0]) {
		codegen.RunPlugin()
		return
	}
	os.Exit(m.Run())
}

func TestCalledAsAPluginItGeneratesTheSame(t *testing.T) {
	t.Parallel()
	project, err := compile.Load(t.Context(), compile.Options{Dir: began(t)})
	if err != nil {
		t.Fatal(err)
	}
	files, err := project.Generate()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range files {
		if strings.HasSuffix(f.Name, ".backstage.go") {
			want["example.com/orderdesk/"+f.Name] = f.Content
		}
	}
	request, err := proto.Marshal(project.Request())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, plugin(t, request)); diff != "" {
		t.Errorf("(-command +plugin)\n%s", diff)
	}
}

// A descriptor set is how schemas come in that only buf or protoc can compile.
func TestADescriptorSetGeneratesTheSame(t *testing.T) {
	t.Parallel()
	dir := began(t)
	project, err := compile.Load(t.Context(), compile.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{File: project.Request().ProtoFile}
	image, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "image.binpb", string(image))
	got := backstage(t, dir, "generate", "-check", "-descriptor-set", "image.binpb")
	if got != (result{}) {
		t.Errorf("%+v", got)
	}
}

// plugin runs this program as a plugin and returns the files that it answers
// with.
func plugin(t *testing.T, request []byte) map[string]string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "protoc-gen-backstage"+filepath.Ext(self))
	if err := os.Symlink(self, name); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	cmd := exec.CommandContext(t.Context(), name)
	cmd.Stdin = bytes.NewReader(request)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(out, response); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range response.File {
		got[f.GetName()] = f.GetContent()
	}
	return got
}
