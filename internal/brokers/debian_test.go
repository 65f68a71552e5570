//go:build unix

package brokers

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// aptGet stands for apt-get. Like a fresh container's, it knows no packages before it
// was updated; what it installs is the server that is really there. It looks whether a
// service could be started meanwhile.
const aptGet = `#!/bin/sh
echo "apt-get $* DEBIAN_FRONTEND=$DEBIAN_FRONTEND" >>"$HERE/calls"
case "$*" in
*update) : >"$HERE/lists" ;;
*install*)
	[ -e "$HERE/lists" ] || { echo "E: Unable to locate package" >&2; exit 100; }
	"$HERE/policy" redis-server start
	[ $? -eq 101 ] || echo "a service was started" >>"$HERE/calls"
	/bin/ln -s "$SERVER" "$HERE/redis-server" ;;
esac
`

// pretendDebian makes a PATH with an apt-get and a systemctl that are stubs.
func pretendDebian(t *testing.T) (here string, system debian) {
	t.Helper()
	server := requireProgram(t, redisRecipe()).path
	here = t.TempDir()
	for name, content := range map[string]string{
		"apt-get":   aptGet,
		"systemctl": "#!/bin/sh\necho \"systemctl $*\" >>\"$HERE/calls\"\n",
	} {
		if err := os.WriteFile(filepath.Join(here, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", here)
	t.Setenv("HERE", here)
	t.Setenv("SERVER", server)
	return here, debian{is: true, root: true, systemd: true, policy: filepath.Join(here, "policy")}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(content)
}

func TestRootOnDebianGetsThePackageAndNoService(t *testing.T) {
	here, system := pretendDebian(t)
	var said bytes.Buffer
	found, err := system.obtain(t.Context(), &said, []recipe{redisRecipe()})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := found["Redis"].path, filepath.Join(here, "redis-server"); got != want {
		t.Errorf("the program is %s, want %s", got, want)
	}
	if line := said.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, "installing redis-server with apt-get") {
		t.Errorf("it said %q, want one line that says what is installed", line)
	}
	calls := read(t, filepath.Join(here, "calls"))
	for _, want := range []string{"install --yes --no-install-recommends redis-server DEBIAN_FRONTEND=noninteractive", "systemctl disable redis-server"} {
		if !strings.Contains(calls, want) {
			t.Errorf("%q was not called:\n%s", want, calls)
		}
	}
	if strings.Contains(calls, "a service was started") {
		t.Error("a service could be started while packages were installed")
	}
	if left := read(t, system.policy); left != "" {
		t.Errorf("the policy against services is still there: %q", left)
	}
}

func TestNothingIsInstalledWhereItIsThere(t *testing.T) {
	here, system := pretendDebian(t)
	if err := os.Symlink(os.Getenv("SERVER"), filepath.Join(here, "redis-server")); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if _, err := system.obtain(t.Context(), &said, []recipe{redisRecipe()}); err != nil {
		t.Fatal(err)
	}
	if calls := read(t, filepath.Join(here, "calls")); calls != "" || said.Len() > 0 {
		t.Errorf("called %q, said %q; want nothing", calls, said.String())
	}
}

func TestWhoMayNotInstallIsToldWhatToDo(t *testing.T) {
	here, system := pretendDebian(t)
	for want, change := range map[string]func(*debian){
		"this is not root":          func(d *debian) { d.root = false },
		"neither Debian nor Ubuntu": func(d *debian) { d.is = false },
	} {
		s := system
		change(&s)
		_, err := s.obtain(t.Context(), io.Discard, []recipe{redisRecipe()})
		var missing *MissingError
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "install Redis 7.0 or newer") {
			t.Errorf("%v; want that %s, and what to do", err, want)
		}
	}
	if calls := read(t, filepath.Join(here, "calls")); calls != "" {
		t.Errorf("called %q", calls)
	}
}

func TestPolicyOfOthersStaysAndDecides(t *testing.T) {
	here, system := pretendDebian(t)
	for code, installs := range map[string]bool{"101": true, "0": false, "104": false} {
		policy := "#!/bin/sh\nexit " + code + "\n"
		if err := os.WriteFile(system.policy, []byte(policy), 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(here, "redis-server"))
		_, err := system.obtain(t.Context(), io.Discard, []recipe{redisRecipe()})
		if (err == nil) != installs {
			t.Errorf("with a policy that answers %s: %v", code, err)
		}
		if left := read(t, system.policy); left != policy {
			t.Errorf("the policy is now %q", left)
		}
		if err := system.restore(); err != nil || read(t, system.policy) != policy {
			t.Errorf("the next run touched the policy: %v", err)
		}
	}
}

func TestPolicyThatADeadRunLeftIsRemoved(t *testing.T) {
	_, system := pretendDebian(t)
	if _, err := system.refuseServices([]string{"redis-server"}); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := exec.Command(system.policy, "redis-server", "start").Run(); !errors.As(err, &exit) || exit.ExitCode() != 101 {
		t.Errorf("the policy answers %v, want 101", err)
	}
	if err := system.restore(); err != nil || read(t, system.policy) != "" {
		t.Errorf("after the next run the policy is %q, %v", read(t, system.policy), err)
	}
}

func TestServerThatIsTooOldIsNotUsed(t *testing.T) {
	here, system := pretendDebian(t)
	old := "#!/bin/sh\necho 'Redis server v=6.0.16 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64'\n"
	if err := os.WriteFile(filepath.Join(here, "redis-server"), []byte(old), 0o755); err != nil {
		t.Fatal(err)
	}
	system.root = false
	_, err := system.obtain(t.Context(), io.Discard, []recipe{redisRecipe()})
	if err == nil || !strings.Contains(err.Error(), `version "6.0.16", and 7.0 is the oldest`) {
		t.Errorf("%v; want that the installed one is too old", err)
	}
}
