package compile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/codegen/compile"
)

// write writes schemas into a folder that is no Go module.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		disk := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(disk), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(disk, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	ordersSchema = "syntax = \"proto3\";\npackage shop.v1;\nimport \"backstage/v1/options.proto\";\nimport \"google/protobuf/empty.proto\";\nimport \"shop/v1/types.proto\";\n" +
		"service OrderTasks {\n  rpc Charge(Order) returns (google.protobuf.Empty) {\n    option (backstage.v1.task) = {};\n  }\n}\n"
	typesSchema = "syntax = \"proto3\";\npackage shop.v1;\nmessage Order {\n  string id = 1;\n}\n"
)

func TestDescriptorsOfSchemasAnywhere(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"proto/shop/v1/orders.proto":       ordersSchema,
		"proto/shop/v1/types.proto":        typesSchema,
		"proto/backstage/v1/options.proto": "package backstage.v1; a copy that nobody reads",
		"apart/orders.proto":               ordersSchema,
		"apart/plain.proto":                typesSchema,
	})
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for name, c := range map[string]struct{ paths, imports, want []string }{
		"a folder":                        {[]string{at("proto")}, nil, []string{"shop/v1/orders.proto", "shop/v1/types.proto"}},
		"a file in its package's folder":  {[]string{at("proto/shop/v1/orders.proto")}, nil, []string{"shop/v1/orders.proto", "shop/v1/types.proto"}},
		"a file elsewhere":                {[]string{at("apart/plain.proto")}, nil, []string{"plain.proto"}},
		"a file elsewhere, with imports":  {[]string{at("apart/orders.proto")}, []string{at("proto")}, []string{"orders.proto", "shop/v1/types.proto"}},
		"a file below an import root":     {[]string{at("apart/plain.proto")}, []string{dir}, []string{"apart/plain.proto"}},
		"one and the same, twice":         {[]string{at("proto"), at("proto/shop/v1/types.proto")}, nil, []string{"shop/v1/orders.proto", "shop/v1/types.proto"}},
		"a folder and its root by itself": {[]string{at("proto/shop")}, []string{at("proto")}, []string{"shop/v1/orders.proto", "shop/v1/types.proto"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, found, err := compile.Descriptors(t.Context(), c.paths, c.imports)
			if err != nil || len(found) > 0 {
				t.Fatalf("%v, %v", err, found)
			}
			var got []string
			for _, f := range set.GetFile() {
				for _, dep := range f.GetDependency() {
					if !slices.Contains(got, dep) {
						t.Errorf("%s is there before %s, which it imports", f.GetName(), dep)
					}
				}
				got = append(got, f.GetName())
			}
			ours := func(name string) bool {
				return strings.HasPrefix(name, "google/") || strings.HasPrefix(name, "backstage/")
			}
			got = slices.DeleteFunc(got, ours)
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("the set has %v, want %v", got, c.want)
			}
		})
	}
}

func TestWhatIsWrongWithSchemasAnywhere(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"syntax/shop/v1/types.proto":   "syntax = \"proto3\";\npackage shop.v1;\nmessage {}\n",
		"missing/shop/v1/orders.proto": ordersSchema,
		"type/shop/v1/types.proto":     "syntax = \"proto3\";\npackage shop.v1;\nmessage Order {\n  Price price = 1;\n}\n",
		"two/a/x.proto":                "syntax = \"proto3\";\n",
		"two/b/x.proto":                "syntax = \"proto3\";\n",
		"none/readme.md":               "",
	})
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for name, c := range map[string]struct {
		path, imports string
		place, want   string
	}{
		"a slip":                {path: "syntax", place: at("syntax/shop/v1/types.proto") + ":3:9", want: "syntax error"},
		"a missing import":      {path: "missing/shop/v1/orders.proto", place: at("missing/shop/v1/orders.proto") + ":5:", want: "shop/v1/types.proto"},
		"a missing type":        {path: "type", place: at("type/shop/v1/types.proto") + ":4:3", want: "Price"},
		"two of one name":       {path: "two", want: "both imported as x.proto"},
		"a folder without any":  {path: "none", want: "no schema"},
		"nothing":               {path: "nowhere", want: "no such file"},
		"a root that is a file": {path: "type", imports: "none/readme.md", want: "is no folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var imports []string
			if c.imports != "" {
				imports = []string{at(c.imports)}
			}
			set, found, err := compile.Descriptors(t.Context(), []string{at(c.path)}, imports)
			if set != nil {
				t.Error("there is a set")
			}
			if c.place == "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want one that says %q", err, c.want)
				}
				return
			}
			if err != nil || len(found) == 0 || !strings.Contains(found[0].Message, c.want) {
				t.Fatalf("%v, %v; want a diagnostic that says %q", err, found, c.want)
			}
			if place, _ := filepath.Abs(found[0].Pos.String()); !strings.HasPrefix(place, c.place) {
				t.Errorf("at %s, want %s", place, c.place)
			}
		})
	}
}
