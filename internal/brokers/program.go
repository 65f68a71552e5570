package brokers

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// recipe is what has to be known of a broker.
type recipe struct {
	name     string // in sentences
	variable string // of the environment, which has the address
	remedy   string // what to install, for whom nothing else helps
	// installed finds the program if it is installed and new enough.
	installed func(ctx context.Context) (program, error)
	packages  []string // of Debian and Ubuntu
	// download gets what is in no package, once the packages are there. Nil: nothing.
	download func(ctx context.Context, say io.Writer) error
	image    string // of Docker
	command  string // the program's name in the image
	// share starts the server that all tests of a run share.
	share func(ctx context.Context, p program) (*Server, error)
}

// program is a broker's program, and how it is run.
type program struct {
	path    string // of the command, or its name in a container
	version string // empty in a container
	image   string // empty if it is installed
}

// String says where the program is from.
func (p program) String() string {
	if p.image != "" {
		return p.image + " through docker compose"
	}
	return p.path + " " + p.version
}

// open claims a site with n ports, and returns it with what runs servers in it.
func (p program) open(n int) (*site, runner, error) {
	s, err := claim(n)
	if err != nil {
		return nil, nil, err
	}
	var on runner
	if p.image != "" {
		on, err = newContainers(s, p.image)
	} else {
		on, err = newProcesses(s)
	}
	return s, on, err
}

// MissingError says that a broker's program is not to be had, why, and what to do.
type MissingError struct {
	// Broker is its name.
	Broker string
	// Tried says for each way why it led nowhere.
	Tried []string
	// Remedy is what the reader can do.
	Remedy string
}

// Error is one sentence with all of it.
func (e *MissingError) Error() string {
	return fmt.Sprintf("no %s: %s; %s", e.Broker, strings.Join(e.Tried, "; "), e.Remedy)
}

// find looks for a program that is there: an installed one, or Docker.
func (r recipe) find(ctx context.Context) (program, error) {
	installed, notInstalled := r.installed(ctx)
	if notInstalled == nil {
		return installed, nil
	}
	noDocker := composes(ctx)
	if noDocker == nil {
		return program{path: r.command, image: r.image}, nil
	}
	return program{}, r.missing(notInstalled, noDocker)
}

// complete finds the program, and downloads before what is in no package.
func (r recipe) complete(ctx context.Context, say io.Writer) (program, error) {
	if r.download != nil {
		if err := r.download(ctx, say); err != nil {
			return program{}, err
		}
	}
	return r.installed(ctx)
}

func (r recipe) missing(tried ...error) *MissingError {
	missing := &MissingError{Broker: r.name, Remedy: r.remedy + ", or start Docker"}
	for _, err := range tried {
		missing.Tried = append(missing.Tried, err.Error())
	}
	return missing
}

// asking is how long a command may take to say which version it is.
const asking = time.Minute

// inPath finds an installed program by its name, if it says with --version that it is
// new enough.
func inPath(name, oldest string) func(ctx context.Context) (program, error) {
	return func(ctx context.Context) (program, error) {
		path, err := exec.LookPath(name)
		if err != nil {
			return program{}, fmt.Errorf("%s is not in the PATH", name)
		}
		ctx, cancel := context.WithTimeout(ctx, asking)
		defer cancel()
		out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
		if err != nil {
			return program{}, fmt.Errorf("%s --version: %w", path, err)
		}
		version := regexp.MustCompile(`\d+(\.\d+)+`).FindString(string(out))
		if !reaches(version, oldest) {
			return program{}, fmt.Errorf("%s is version %q, and %s is the oldest that will do", path, version, oldest)
		}
		return program{path: path, version: version}, nil
	}
}

// reaches compares versions number by number.
func reaches(version, oldest string) bool {
	have, want := strings.Split(version, "."), strings.Split(oldest, ".")
	for i := range want {
		if i >= len(have) {
			return false
		}
		a, err := strconv.Atoi(have[i])
		b, _ := strconv.Atoi(want[i])
		if err != nil || a != b {
			return err == nil && a > b
		}
	}
	return true
}
