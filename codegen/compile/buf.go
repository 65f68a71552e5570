package compile

import (
	"fmt"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// bufConfig is what matters here of buf.yaml, in all its versions.
type bufConfig struct {
	Version string `yaml:"version"`
	Modules []struct {
		Path     string   `yaml:"path"`
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
	out := &roots{}
	if text != nil {
		out.whole = at == m.dir
		var work bufWork
		if err := yaml.Unmarshal(text, &work); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(at, "buf.work.yaml"), err)
		}
		for _, d := range work.Directories {
			out.add(filepath.Join(at, d), m)
		}
		return out, nil
	}
	text, at, err = nearest(dir, m, "buf.yaml")
	if text == nil || err != nil {
		return nil, err
	}
	var c bufConfig
	if err := yaml.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(at, "buf.yaml"), err)
	}
	out.whole = at == m.dir
	c.into(out, at, m)
	return out, nil
}

func (c *bufConfig) into(out *roots, at string, m *module) {
	out.bufDeps = c.Deps
	for _, mod := range c.Modules {
		out.add(filepath.Join(at, mod.Path), m)
		for _, x := range mod.Excludes {
			out.excluded = append(out.excluded, filepath.Join(at, x))
		}
	}
	for _, r := range c.Build.Roots {
		out.add(filepath.Join(at, r), m)
	}
	if len(c.Modules)+len(c.Build.Roots) == 0 {
		out.add(at, m)
	}
	for _, x := range c.Build.Excludes {
		for _, r := range out.list {
			out.excluded = append(out.excluded, filepath.Join(r.dir, x))
		}
	}
}
