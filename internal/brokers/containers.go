package brokers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// composeFile is in a site whose servers run in containers.
	composeFile = "compose.json"
	// network is the container in whose network all servers of a site live: they find
	// each other, and tests find them, at 127.0.0.1 and the site's ports. It outlives
	// every server, so that the ports stay taken while one is down.
	network = "network"
	// inside is where the servers' folders are in their containers. Nothing of the host
	// is mounted: a daemon may run as another user, or in a virtual machine.
	inside = "/tmp/backstage"
)

// pulling is how long Docker may take for an image that it has to get first.
const pulling = 10 * time.Minute

// containers runs the servers of a site through docker compose. What a server wrote
// stays in its container while that is down.
type containers struct {
	site  *site
	image string
	watch *watcher

	mu     sync.Mutex
	model  compose
	paused map[string]bool
}

// compose is a compose file. JSON is YAML too.
type compose struct {
	Name     string             `json:"name"`
	Services map[string]service `json:"services"`
}

type service struct {
	Image       string            `json:"image"`
	Entrypoint  []string          `json:"entrypoint"`
	Command     []string          `json:"command,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	Ports       []string          `json:"ports,omitempty"`
	NetworkMode string            `json:"network_mode,omitempty"`
}

// newContainers takes the site over.
func newContainers(s *site, image string) (*containers, error) {
	name := "backstage-" + strings.ReplaceAll(filepath.Base(s.dir), "site-", fmt.Sprintf("%d-", s.base))
	c := &containers{site: s, image: image, paused: make(map[string]bool), model: compose{
		Name: name, Services: map[string]service{},
	}}
	var published []string
	for i := range s.ports {
		published = append(published, fmt.Sprintf("127.0.0.1:%d:%d", s.port(i), s.port(i)))
	}
	c.model.Services[network] = service{
		Image: image, Ports: published,
		Entrypoint: []string{"/bin/sh", "-c", "while :; do sleep 60; done"},
	}
	err := c.write()
	if err == nil {
		c.watch, err = watch(s.dir)
	}
	if err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return c, nil
}

func (c *containers) write() error {
	content, err := json.MarshalIndent(c.model, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.site.dir, composeFile), content, 0o600)
}

// described is a server as a service: a shell writes its files where there are none yet,
// and becomes the server.
func (c *containers) described(s *spec) service {
	dir := path.Join(inside, s.name)
	script := "mkdir -p " + dir + " && cd " + dir
	environment := make(map[string]string)
	var names []string
	for name := range s.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		variable := fmt.Sprintf("BACKSTAGE_FILE_%d", i)
		environment[variable] = literally(s.files[name])
		script += fmt.Sprintf(` && { [ -e %s ] || printf %%s "$%s" >%s; }`, name, variable, name)
	}
	script += ` && exec "$@"`
	at := place{dir: dir, bind: "0.0.0.0"}
	if s.env != nil {
		for name, value := range s.env(at) {
			environment[name] = literally(value)
		}
	}
	var words []string
	for _, word := range s.command(at) {
		words = append(words, literally(word))
	}
	return service{
		Image: c.image, NetworkMode: "service:" + network, Environment: environment,
		Entrypoint: []string{"/bin/sh", "-c", literally(script), "sh"}, Command: words,
	}
}

// literally keeps compose from putting variables of its own into a text.
func literally(text string) string { return strings.ReplaceAll(text, "$", "$$") }

func (c *containers) start(ctx context.Context, s *spec) error {
	c.mu.Lock()
	c.model.Services[s.name] = c.described(s)
	err := c.write()
	c.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pulling)
	defer cancel()
	_, err = c.docker(ctx, "up", "--detach", "--no-recreate", s.name)
	return err
}

func (c *containers) stop(ctx context.Context, s *spec) error {
	if err := c.awake(s); err != nil {
		return err
	}
	_, err := c.docker(ctx, "stop", "--timeout", "60", s.name)
	return err
}

func (c *containers) kill(s *spec) error {
	if err := c.awake(s); err != nil {
		return err
	}
	running, err := c.soon("ps", "--status", "running", "--services")
	if err != nil || !slices.Contains(strings.Fields(running), s.name) {
		return err
	}
	_, err = c.soon("kill", s.name)
	return err
}

// awake makes sure that a server is not paused: Docker does not end one that is.
func (c *containers) awake(s *spec) error {
	c.mu.Lock()
	paused := c.paused[s.name]
	c.mu.Unlock()
	if !paused {
		return nil
	}
	return c.resume(s)
}

func (c *containers) pause(s *spec) error { return c.toggle(s, "pause", true) }

func (c *containers) resume(s *spec) error { return c.toggle(s, "unpause", false) }

func (c *containers) toggle(s *spec, command string, paused bool) error {
	if _, err := c.soon(command, s.name); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused[s.name] = paused
	return nil
}

func (c *containers) ended(*spec) <-chan struct{} { return nil }

func (c *containers) log(s *spec) string {
	said, err := c.soon("logs", "--no-color", "--no-log-prefix", "--tail", "50", s.name)
	if err != nil {
		return err.Error()
	}
	return said
}

func (c *containers) keep(broker, address string) error {
	if err := keep(c.site.dir, broker, address); err != nil {
		return err
	}
	c.watch.dismiss()
	return nil
}

func (c *containers) close() error {
	var err error
	if composed(c.site.dir) {
		ctx, cancel := context.WithTimeout(context.Background(), starting)
		defer cancel()
		err = composeDown(ctx, c.site.dir)
	}
	c.watch.dismiss()
	return errors.Join(err, c.site.remove())
}

// soon is a command of compose that takes seconds.
func (c *containers) soon(words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), starting)
	defer cancel()
	return c.docker(ctx, words...)
}

func (c *containers) docker(ctx context.Context, words ...string) (string, error) {
	return composeCommand(ctx, c.site.dir, words...)
}

// composed says that the servers of a site run in containers.
func composed(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, composeFile))
	return err == nil
}

func composeDown(ctx context.Context, dir string) error {
	_, err := composeCommand(ctx, dir, "down", "--volumes", "--timeout", "0")
	return err
}

// composeCommand runs docker compose on a site's file, and returns what it printed.
func composeCommand(ctx context.Context, dir string, words ...string) (string, error) {
	return docker(ctx, append([]string{"compose", "--file", filepath.Join(dir, composeFile)}, words...)...)
}

// docker runs one command of Docker, and returns what it printed.
func docker(ctx context.Context, words ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", words...)
	var out, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &wrong
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", strings.Join(words, " "), err, lastLine(wrong.String()))
	}
	return out.String(), nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// composes returns nil if there is a Docker that can run servers here.
func composes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	if _, err := exec.LookPath("docker"); err != nil {
		return errors.New("docker is not in the PATH")
	}
	if _, err := docker(ctx, "version", "--format", "{{.Server.Version}}"); err != nil {
		return fmt.Errorf("no Docker daemon answers (%w)", err)
	}
	if _, err := docker(ctx, "compose", "version"); err != nil {
		return fmt.Errorf("the docker command has no compose (%w)", err)
	}
	return nil
}
