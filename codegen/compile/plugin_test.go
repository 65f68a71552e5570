package compile

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/backstage-go/backstage/codegen/gomod"
)

func TestGeneratorsAreCheckedAsProtocChecksThem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		generate generator
		want     string
	}{
		{"panics", func(*protogen.Plugin, *protogen.File) error { panic("boom") }, "fake panicked: boom"},
		{"fails", func(*protogen.Plugin, *protogen.File) error { return errors.New("no") }, "no"},
		{"reports an error", func(gen *protogen.Plugin, _ *protogen.File) error { gen.Error(errors.New("no")); return nil }, "fake: no"},
		{"knows no editions", func(gen *protogen.Plugin, _ *protogen.File) error { gen.SupportedFeatures = 1; return nil }, "fake: a.proto: the generator knows no editions"},
		{"knows old editions", func(gen *protogen.Plugin, _ *protogen.File) error {
			gen.SupportedFeatures = 3
			gen.SupportedEditionsMinimum = descriptorpb.Edition_EDITION_PROTO2
			gen.SupportedEditionsMaximum = descriptorpb.Edition_EDITION_PROTO3
			return nil
		}, "fake: a.proto: the generator does not know EDITION_2023"},
		{"knows no optional fields", func(gen *protogen.Plugin, _ *protogen.File) error {
			gen.SupportedFeatures = uint64(pluginpb.CodeGeneratorResponse_FEATURE_SUPPORTS_EDITIONS)
			gen.SupportedEditionsMinimum = descriptorpb.Edition_EDITION_2023
			gen.SupportedEditionsMaximum = descriptorpb.Edition_EDITION_2023
			return nil
		}, "fake: b.proto: the generator does not know optional fields of proto3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			gen, err := newPlugin(editionsAndOptional())
			if err != nil {
				t.Fatal(err)
			}
			_, err = runPlugin("fake", gen, test.generate)
			if err == nil || err.Error() != test.want {
				t.Errorf("runPlugin returned %v, want %q", err, test.want)
			}
		})
	}
}

// editionsAndOptional asks for a schema of edition 2023 and for one of proto3
// with an optional field.
func editionsAndOptional() *pluginpb.CodeGeneratorRequest {
	return &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{"a.proto", "b.proto"},
		ProtoFile: []*descriptorpb.FileDescriptorProto{
			{
				Name:    proto.String("a.proto"),
				Syntax:  proto.String("editions"),
				Edition: descriptorpb.Edition_EDITION_2023.Enum(),
				Options: &descriptorpb.FileOptions{GoPackage: proto.String("example.com/shop/a")},
			},
			{
				Name:    proto.String("b.proto"),
				Syntax:  proto.String("proto3"),
				Options: &descriptorpb.FileOptions{GoPackage: proto.String("example.com/shop/b")},
				MessageType: []*descriptorpb.DescriptorProto{{
					Name: proto.String("M"),
					NestedType: []*descriptorpb.DescriptorProto{{
						Name: proto.String("N"),
						Field: []*descriptorpb.FieldDescriptorProto{{
							Name:           proto.String("f"),
							Number:         proto.Int32(1),
							Label:          descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
							Type:           descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
							Proto3Optional: proto.Bool(true),
							OneofIndex:     proto.Int32(0),
						}},
						OneofDecl: []*descriptorpb.OneofDescriptorProto{{Name: proto.String("_f")}},
					}},
				}},
			},
		},
	}
}

func TestGeneratedFilesStayInTheModuleAndAreGeneratedOnce(t *testing.T) {
	t.Parallel()
	m := &module{gomod.Module{Path: "example.com/shop"}}
	for name, test := range map[string]struct {
		files []string
		want  string
	}{
		"outside":                {[]string{"example.com/other/a.go"}, "is not in module example.com/shop"},
		"a module with a prefix": {[]string{"example.com/shopping/a.go"}, "is not in module example.com/shop"},
		"upwards":                {[]string{"example.com/shop/../a.go"}, "is not in module example.com/shop"},
		"absolute":               {[]string{"/etc/passwd"}, "is not in module example.com/shop"},
		"twice":                  {[]string{"example.com/shop/a.go", "example.com/shop/a.go"}, "a.go is generated twice"},
	} {
		var files []File
		for _, f := range test.files {
			files = append(files, File{Name: f})
		}
		if _, err := place(files, m); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: place returned %v, want %q", name, err, test.want)
		}
	}
	files, err := place([]File{{Name: "example.com/shop/gen/a.go"}}, m)
	if err != nil || files[0].Name != "gen/a.go" {
		t.Errorf("place = %v, %v, want gen/a.go", files, err)
	}
}

func TestPackagesAreReadBeforeTheirSchemaCanBeParsed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "",
		"package a;":                 "a",
		"\ufeffpackage a.b.c ;":      "a.b.c",
		"// package no;\npackage a;": "a",
		"/* package no;\n*/ syntax = \"proto3\"; package a;": "a",
		`option x = "; package no;"; package a;`:             "a",
		`option x = '\'; package no;'; package a;`:           "a",
		"message package {}":                                 "",
		"message M { string package = 1; }":                  "",
		"/* never closed package a;":                         "",
		`"never closed package a;`:                           "",
	} {
		if got := packageOf(text); got != want {
			t.Errorf("packageOf(%q) = %q, want %q", text, got, want)
		}
	}
}
