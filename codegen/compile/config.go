package compile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ConfigFile is where a module says where its schemas are. It is looked for in
// the working directory and above, up to the module's root, and is not needed
// where schemas lie in folders named after their package.
const ConfigFile = "backstage.yaml"

// A config is what backstage.yaml may hold.
type config struct {
	// Roots are the folders whose schemas are compiled; a schema is imported
	// by its path below one.
	Roots []string `yaml:"roots"`
	// Imports are folders and Go modules that schemas may import from and for
	// which nothing is generated.
	Imports []string `yaml:"imports"`
}

// readConfig returns the content and the folder of the nearest backstage.yaml.
func readConfig(dir string, m *module) (*config, string, error) {
	text, at, err := nearest(dir, m, ConfigFile)
	if text == nil || err != nil {
		return nil, "", err
	}
	c := &config{}
	if err := decodeKnown(text, c); err != nil {
		return nil, "", fmt.Errorf("%s: %w", relative(dir, filepath.Join(at, ConfigFile)), err)
	}
	return c, at, nil
}

// decodeKnown refuses keys that mean nothing, with their line.
func decodeKnown(text []byte, c *config) error {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil || len(document.Content) == 0 {
		return err
	}
	known := []string{"roots", "imports"}
	keys := document.Content[0].Content
	for i := 0; i < len(keys); i += 2 {
		if key := keys[i]; !slices.Contains(known, key.Value) {
			return fmt.Errorf("line %d: unknown key %q; known are %s", key.Line, key.Value, strings.Join(known, ", "))
		}
	}
	return document.Decode(c)
}

// nearest returns the content of a file at a folder or above it in the module,
// and the folder where it is.
func nearest(dir string, m *module, name string) ([]byte, string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		text, err := os.ReadFile(filepath.Join(at, name))
		if err == nil {
			return text, at, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, "", err
		}
		if at == m.Dir || !within(m.Dir, at) {
			return nil, "", nil
		}
	}
}
