package brokers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pretendedPath is the PATH of what runs in pretended containers.
const pretendedPath = "BACKSTAGE_TEST_PATH"

// pretend makes a PATH with a docker command that is this test binary, and with what a
// shell needs to remove a folder; there is no broker in it. The commands that were
// called are in the file that it returns.
func pretend(t *testing.T) (calls string) {
	t.Helper()
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"docker": self, "rm": "", "rmdir": ""} {
		if target == "" {
			if target, err = exec.LookPath(name); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	calls = filepath.Join(bin, "calls")
	t.Setenv(pretendedPath, os.Getenv("PATH"))
	t.Setenv("PATH", bin)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each command of the stub takes a second
	return calls
}

// pretendDocker does what the docker command would do, with processes for containers.
func pretendDocker(words []string) int {
	if err := (&pretender{}).do(words); err != nil {
		fmt.Fprintln(os.Stderr, "docker (a stub):", err)
		return 1
	}
	return 0
}

type pretender struct {
	model compose
	dir   string // of the pretended containers
}

func (p *pretender) do(words []string) error {
	self, err := exec.LookPath(os.Args[0])
	if err != nil {
		return err
	}
	calls, err := os.OpenFile(filepath.Join(filepath.Dir(self), "calls"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer calls.Close()
	fmt.Fprintln(calls, strings.Join(words, " "))
	switch {
	case slices.Equal(words, []string{"version", "--format", "{{.Server.Version}}"}), slices.Equal(words, []string{"compose", "version"}):
		_, err := fmt.Println("27.0")
		return err
	case len(words) > 3 && words[0] == "compose" && words[1] == "--file":
		content, err := os.ReadFile(words[2])
		if err != nil {
			return err
		}
		if err := json.Unmarshal(content, &p.model); err != nil {
			return err
		}
		p.dir = filepath.Join(filepath.Dir(words[2]), "pretended")
		return p.compose(words[3], words[4:])
	}
	return fmt.Errorf("no such command: %q", words)
}

func (p *pretender) compose(command string, words []string) error {
	name := words[len(words)-1]
	running := p.identity(name).fate() == alive
	switch command {
	case "up":
		if running {
			return nil
		}
		return p.up(name)
	case "ps":
		for name := range p.model.Services {
			if p.identity(name).fate() == alive {
				fmt.Println(name)
			}
		}
		return nil
	case "logs":
		fmt.Print(tail(filepath.Join(p.dir, name+".log")))
		return nil
	case "down":
		for name := range p.model.Services {
			if err := p.end(name, killAll); err != nil {
				return err
			}
		}
		return os.RemoveAll(p.dir)
	case "stop":
		return p.end(name, terminateAll)
	}
	if !running {
		return fmt.Errorf("%s is not running", name)
	}
	paused := filepath.Join(p.dir, name+".paused")
	_, err := os.Stat(paused)
	isPaused := err == nil
	switch command {
	case "kill":
		if isPaused {
			return fmt.Errorf("%s is paused", name)
		}
		return p.end(name, killAll)
	case "pause":
		return errors.Join(os.WriteFile(paused, nil, 0o600), pauseAll(p.identity(name).pid))
	case "unpause":
		return errors.Join(os.Remove(paused), resumeAll(p.identity(name).pid))
	}
	return fmt.Errorf("compose has no command %s", command)
}

func (p *pretender) identity(name string) identity {
	all, err := recorded(p.dir, name)
	if err != nil || len(all) == 0 {
		return identity{pid: 1, boot: "none"}
	}
	return all[0]
}

// up starts a service as a process. It is strict where Docker would be: the network has
// to be there, and has to publish the port.
func (p *pretender) up(name string) error {
	s := p.model.Services[name]
	if s.Image == "" || s.NetworkMode != "service:"+network {
		return fmt.Errorf("service %s: image %q in network %q", name, s.Image, s.NetworkMode)
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	var words []string
	for _, word := range append(s.Entrypoint, s.Command...) {
		words = append(words, p.translated(word))
	}
	port := p.port(s, words)
	if _, err := strconv.Atoi(port); err != nil || !slices.Contains(p.model.Services[network].Ports, "127.0.0.1:"+port+":"+port) {
		return fmt.Errorf("service %s: port %s is not published", name, port)
	}
	log, err := os.OpenFile(filepath.Join(p.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = []string{"PATH=" + os.Getenv(pretendedPath)}
	for key, value := range s.Environment {
		cmd.Env = append(cmd.Env, key+"="+p.translated(value))
	}
	apart(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	return record(p.dir, name, identityOf(cmd.Process.Pid))
}

// port is the one that a service listens on.
func (p *pretender) port(s service, words []string) string {
	for _, content := range s.Environment {
		if listeners := regexp.MustCompile(`(?m)^listeners=PLAINTEXT://0\.0\.0\.0:(\d+)`).FindStringSubmatch(content); listeners != nil {
			return listeners[1]
		}
	}
	if i := slices.Index(words, "--port"); i > 0 && words[i+1] != "0" {
		return words[i+1]
	}
	return words[cmp.Or(slices.Index(words, "--tls-port"), 0)+1]
}

// translated is a word as the process sees it that stands for a container: with folders
// that nobody else has, with jars that are here, and on the address that is published.
func (p *pretender) translated(word string) string {
	jars, err := kafkaJars()
	if err != nil {
		jars = err.Error()
	}
	return strings.NewReplacer("$$", "$", inside, filepath.Join(p.dir, "inside"), kafkaJarsInImage, jars, "0.0.0.0", "127.0.0.1").Replace(word)
}

func (p *pretender) end(name string, how func(int) error) error {
	i := p.identity(name)
	if i.fate() != alive {
		return nil
	}
	if err := how(i.pid); err != nil {
		return err
	}
	return until(context.Background(), starting, func(context.Context) error {
		if i.fate() == alive {
			return fmt.Errorf("%s is still there", name)
		}
		return nil
	})
}
