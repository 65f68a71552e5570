package compile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// bufConfig is what matters here of buf.yaml, in all its versions.
type bufConfig struct {
	Version string `yaml:"version"`
	Modules []struct {
		Path     string   `yaml:"path"`
		Includes []string `yaml:"includes"`
		Excludes []string `yaml:"excludes"`
	} `yaml:"modules"`
	Build struct {
		Roots    []string `yaml:"roots"`
		Excludes []string `yaml:"excludes"`
	} `yaml:"build"`
	Deps []string `yaml:"deps"`
}

// bufWork is buf.work.yaml, which names the folders of several buf.yaml.
type bufWork struct {
	Directories []string `yaml:"directories"`
}

// bufRoots returns the import roots that buf would use, nil where there is no
// buf.yaml.
func bufRoots(dir string, m *module) (*roots, error) {
	text, at, err := nearest(dir, m, "buf.work.yaml")
	if err != nil {
		return nil, err
	}
	if text != nil {
		return workRoots(dir, text, at, m)
	}
	text, at, err = nearest(dir, m, "buf.yaml")
	if text == nil || err != nil {
		return nil, err
	}
	out := &roots{whole: at == m.Dir}
	return out, out.addBuf(dir, text, at, m)
}

// workRoots are the folders of a workspace, each with a buf.yaml of its own.
func workRoots(dir string, text []byte, at string, m *module) (*roots, error) {
	var work bufWork
	if err := yaml.Unmarshal(text, &work); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(at, "buf.work.yaml"), err)
	}
	out := &roots{whole: at == m.Dir}
	for _, d := range work.Directories {
		folder := filepath.Join(at, d)
		text, err := os.ReadFile(filepath.Join(folder, "buf.yaml"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err := out.addBuf(dir, text, folder, m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addBuf adds the roots of a buf.yaml in a folder, which may be empty.
func (r *roots) addBuf(dir string, text []byte, at string, m *module) error {
	var c bufConfig
	if err := yaml.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(at, "buf.yaml"), err)
	}
	r.bufDeps = append(r.bufDeps, c.Deps...)
	have := len(r.list)
	for _, mod := range c.Modules {
		r.add(filepath.Join(at, mod.Path), m)
		for _, folder := range mod.Includes {
			r.included = append(r.included, filepath.Join(at, folder))
		}
		for _, folder := range mod.Excludes {
			r.excluded = append(r.excluded, filepath.Join(at, folder))
		}
	}
	for _, folder := range c.Build.Roots {
		r.add(filepath.Join(at, folder), m)
	}
	if len(c.Modules)+len(c.Build.Roots) == 0 {
		r.add(at, m)
	}
	for _, added := range r.list[have:] {
		if info, err := os.Stat(added.dir); added.generate && (err != nil || !info.IsDir()) {
			return fmt.Errorf("buf's configuration names the folder %s, which is not there", relative(dir, added.dir))
		}
		for _, folder := range c.Build.Excludes {
			r.excluded = append(r.excluded, filepath.Join(added.dir, folder))
		}
	}
	return nil
}
