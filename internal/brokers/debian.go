package brokers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// debian is a system on which packages can be installed with apt-get.
type debian struct {
	is      bool   // a system of that kind
	root    bool   // that this process may change
	systemd bool   // that starts services
	policy  string // the program that Debian asks whether a service may be started
}

// thisDebian says what this system is.
func thisDebian() debian {
	there := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	return debian{
		is: there("/etc/debian_version"), root: os.Geteuid() == 0,
		systemd: there("/run/systemd/system"), policy: "/usr/sbin/policy-rc.d",
	}
}

// refusing is a policy of ours. The comment tells it from those of others.
const refusing = `#!/bin/sh
# Backstage installs brokers for tests, and keeps their services from being started.
exit 101
`

// errNotDebian and errNotRoot say why nothing is installed.
var (
	errNotDebian = errors.New("nothing is installed here, because this is neither Debian nor Ubuntu")
	errNotRoot   = errors.New("nothing is installed, because this is not root")
)

// install installs packages, and says so before. The services that come with them are
// neither started nor left to be started with the system. It is not interrupted: what is
// installed by half is worse than what is late.
func (d debian) install(say io.Writer, packages ...string) error {
	if !d.is {
		return errNotDebian
	}
	if !d.root {
		return errNotRoot
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("apt-get is not in the PATH")
	}
	fmt.Fprintf(say, "brokers: installing %s with apt-get (this is root, and there is no Docker); no service is started\n", strings.Join(packages, ", "))
	allow, err := d.refuseServices(packages)
	if err != nil {
		return err
	}
	defer allow()
	install := append([]string{"install", "--yes", "--no-install-recommends"}, packages...)
	if apt(install...) != nil {
		// A fresh container has no lists of packages.
		if err := apt("update"); err != nil {
			return err
		}
		if err := apt(install...); err != nil {
			return err
		}
	}
	if d.systemd {
		if out, err := exec.Command("systemctl", append([]string{"disable"}, packages...)...).CombinedOutput(); err != nil {
			fmt.Fprintf(say, "brokers: the services of %s will start with the system: systemctl disable: %s\n", strings.Join(packages, ", "), lastLine(string(out)))
		}
	}
	return nil
}

// refuseServices keeps packages from starting services, until allow is called. A policy
// that somebody else made stays as it is, and must refuse them itself.
func (d debian) refuseServices(packages []string) (allow func(), err error) {
	found, err := os.ReadFile(d.policy)
	if err == nil && string(found) != refusing {
		for _, service := range packages {
			var exit *exec.ExitError
			err := exec.Command(d.policy, service, "start").Run()
			if !errors.As(err, &exit) || exit.ExitCode() != 101 {
				return nil, fmt.Errorf("%s would let the service %s start, which nobody asked for", d.policy, service)
			}
		}
		return func() {}, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("keep services from starting: %w", err)
	}
	if err := os.WriteFile(d.policy, []byte(refusing), 0o755); err != nil {
		return nil, fmt.Errorf("keep services from starting: %w", err)
	}
	return func() { _ = os.Remove(d.policy) }, nil
}

// restore removes a policy that a run left behind when it was killed while it installed.
func (d debian) restore() error {
	if found, err := os.ReadFile(d.policy); err == nil && string(found) == refusing && d.root {
		return os.Remove(d.policy)
	}
	return nil
}

func apt(words ...string) error {
	cmd := exec.Command("apt-get", append([]string{"--quiet", "--option", "DPkg::Lock::Timeout=120"}, words...)...)
	// Even if the policy is not asked, systemctl does nothing when it is told to be offline.
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "SYSTEMD_OFFLINE=1", "RUNLEVEL=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	apart(cmd)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w: %s", words[0], err, lastLine(out.String()))
	}
	return nil
}

// obtain finds the program of each recipe, and installs what is missing if it can.
func (d debian) obtain(ctx context.Context, say io.Writer, recipes []recipe) (map[string]program, error) {
	found := make(map[string]program)
	var packages []string
	missing := make(map[string]*MissingError)
	for _, r := range recipes {
		p, err := r.find(ctx)
		var none *MissingError
		if errors.As(err, &none) && r.download != nil {
			// What a package would bring may be there already.
			var failed error
			if p, failed = r.complete(ctx, say); failed == nil {
				found[r.name] = p
				continue
			}
			none.Tried = append(none.Tried, failed.Error())
		}
		if errors.As(err, &none) {
			missing[r.name] = none
			packages = append(packages, r.packages...)
		} else if err != nil {
			return nil, err
		}
		found[r.name] = p
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // what was not found then may be there
	}
	if len(missing) == 0 {
		return found, nil
	}
	failed := d.install(say, slices.Compact(slices.Sorted(slices.Values(packages)))...)
	var errs []error
	for _, r := range recipes {
		none := missing[r.name]
		if none == nil {
			continue
		}
		if failed != nil {
			none.Tried = append(none.Tried, failed.Error())
			errs = append(errs, none)
			continue
		}
		p, err := r.complete(ctx, say)
		if err != nil {
			errs = append(errs, r.missing(fmt.Errorf("after the installation: %w", err)))
			continue
		}
		found[r.name] = p
	}
	return found, errors.Join(errs...)
}
