//go:build unix

package brokers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// house is a folder for temporary files in which a tool has the brokers to itself.
type house struct {
	t      *testing.T
	tmp    string
	extras []string // of the environment
}

func newHouse(t *testing.T) *house {
	t.Helper()
	requireProgram(t, redisRecipe())
	h := &house{t: t, tmp: t.TempDir()}
	t.Cleanup(func() {
		out, err := h.tool("down").CombinedOutput()
		if err != nil {
			t.Errorf("take down what is up: %v\n%s", err, out)
		}
	})
	return h
}

// tool is a call of the tool, as a process of its own.
func (h *house) tool(args ...string) *exec.Cmd {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asTool+"=1", "TMPDIR="+h.tmp, "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, h.extras...)
	return cmd
}

// sites returns the sites that are in the house.
func (h *house) sites() []string {
	all, err := filepath.Glob(filepath.Join(h.tmp, "*", "*", "site-*"))
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// empties waits until nothing is left, neither a folder nor a server at an address.
func (h *house) empties(address string) {
	h.t.Helper()
	err := until(h.t.Context(), time.Minute, func(ctx context.Context) error {
		if left := h.sites(); len(left) > 0 {
			return fmt.Errorf("%q is left", left)
		}
		if answers(ctx, address) {
			return fmt.Errorf("the server on %s still answers", address)
		}
		return nil
	})
	if err != nil {
		h.t.Error(err)
	}
}

func answers(ctx context.Context, address string) bool {
	_, err := ask(ctx, address, nil, "PING")
	return err == nil
}

// waiter is a tool whose command waits until it is told to end, or has a signal.
type waiter struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   *bufio.Reader
	said    bytes.Buffer
	address string
}

// wait starts a tool and returns when its command runs.
func (h *house) wait() *waiter {
	h.t.Helper()
	w := &waiter{cmd: h.tool("--", "/bin/sh", "-c", `trap 'echo heard; exit 5' TERM; echo "$`+RedisAddress+`"; read -r line; exit 7`)}
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		h.t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	w.cmd.Stderr = &w.said
	if err := w.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = w.in.Close()
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
	})
	w.lines = bufio.NewReader(out)
	line, err := w.lines.ReadString('\n')
	if err != nil {
		_ = w.cmd.Wait()
		h.t.Fatalf("the tool's command says nothing: %v\n%s", err, w.said.String())
	}
	w.address = strings.TrimSpace(line)
	if !answers(h.t.Context(), w.address) {
		h.t.Fatalf("the server on %s does not answer", w.address)
	}
	return w
}

func TestToolRunsACommandWithBrokers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cmd := h.tool("--", "/bin/sh", "-c", `echo "$`+Required+` $`+RedisAddress+`"; exit 3`)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("the tool ended with %v, want the command's code 3", err)
	}
	required, address, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if required != "1" || address == "" {
		t.Errorf("the command saw %q", out)
	}
	if line := said.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, "Redis on "+address+" from /") {
		t.Errorf("the tool said %q, want one line that says from where Redis is", line)
	}
	h.empties(address)
}

func TestToolNamesTheBrokersThatWereChosen(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	out, err := h.tool("-only", "redis", "--", "/bin/sh", "-c", `echo "$`+Required+`"`).Output()
	if err != nil || string(out) != "redis\n" {
		t.Errorf("%s is %q, %v; want redis", Required, out, err)
	}
}

func TestToolPassesSignalsOnAndTakesDown(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	w := h.wait()
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if line, err := w.lines.ReadString('\n'); err != nil || line != "heard\n" {
		t.Errorf("the command said %q, %v; want that it heard", line, err)
	}
	var exit *exec.ExitError
	if err := w.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 5 {
		t.Errorf("the tool ended with %v, want the command's code 5", err)
	}
	h.empties(w.address)
}

func TestNoServerSurvivesAToolThatWasKilled(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	w := h.wait()
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.empties(w.address)
}

func TestNoServerSurvivesItsFolder(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	w := h.wait()
	for _, site := range h.sites() {
		if err := os.RemoveAll(site); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.empties(w.address)
}

func TestNoContainerSurvivesAToolThatWasKilled(t *testing.T) {
	requireProgram(t, redisRecipe())
	calls := pretend(t)
	h := newHouse(t)
	w := h.wait()
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.empties(w.address)
	_ = w.in.Close()
	_ = w.cmd.Wait()
	if called := read(t, calls); !strings.Contains(called, " down --volumes --timeout 0") || !strings.Contains(w.said.String(), "from redis:7.2 through docker compose") {
		t.Errorf("the tool said %q and docker was called so:\n%s", w.said.String(), called)
	}
}

func TestNextRunTakesDownWhatNobodyWatched(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	w := h.wait()
	for _, pid := range h.watchers() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = w.in.Close()
	_ = w.cmd.Wait()
	if !answers(t.Context(), w.address) {
		t.Fatal("somebody took the server down: this test shows nothing")
	}
	bystander := h.wait()
	if answers(t.Context(), w.address) {
		t.Errorf("the server on %s survived the next run", w.address)
	}
	// A run leaves alone what has an owner.
	if out, err := h.tool("--", "/bin/sh", "-c", "exit 0").CombinedOutput(); err != nil {
		t.Errorf("a third run: %v\n%s", err, out)
	}
	if !answers(t.Context(), bystander.address) {
		t.Error("a run took down the server of another that was going on")
	}
	if err := bystander.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.empties(bystander.address)
}

// watchers finds the processes that watch over the sites of this house.
func (h *house) watchers() []int {
	h.t.Helper()
	out, err := exec.Command("ps", "-e", "-o", "pid=,args=").Output()
	if err != nil {
		h.t.Fatal(err)
	}
	var all []int
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "backstage-brokers "+h.tmp) {
			var pid int
			if _, err := fmt.Sscan(line, &pid); err != nil {
				h.t.Fatal(err)
			}
			all = append(all, pid)
		}
	}
	if len(all) == 0 {
		h.t.Fatalf("nobody watches over %s:\n%s", h.tmp, out)
	}
	return all
}

func TestDevelopersBrokersStayUp(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	first, err := h.tool("up").Output()
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(string(first[bytes.LastIndexByte(first, '=')+1:]))
	if want := "export " + Required + "=1\nexport " + RedisAddress + "=" + address + "\n"; string(first) != want {
		t.Errorf("up printed %q, want %q", first, want)
	}
	if second, err := h.tool("up").Output(); err != nil || string(second) != string(first) {
		t.Errorf("the second time up printed %q, %v; want %q", second, err, first)
	}
	if out, err := h.tool("--", "/bin/sh", "-c", "exit 0").CombinedOutput(); err != nil {
		t.Errorf("a run beside it: %v\n%s", err, out)
	}
	if !answers(t.Context(), address) {
		t.Error("a run took down what a developer wants to stay up")
	}
	for range 2 {
		if out, err := h.tool("down").CombinedOutput(); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	}
	h.empties(address)
}

func TestBrokersThatDiedAreStartedAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	first, err := h.tool("up").Output()
	if err != nil {
		t.Fatal(err)
	}
	servers, err := recorded(h.sites()[0], serversFile)
	if err != nil || len(servers) != 1 {
		t.Fatalf("on record are %v, %v; want one server", servers, err)
	}
	if err := syscall.Kill(servers[0].pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := until(t.Context(), time.Minute, func(context.Context) error {
		if servers[0].fate() == alive {
			return errors.New("the server is still there")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	second, err := h.tool("up").Output()
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(string(second[bytes.LastIndexByte(second, '=')+1:]))
	if bytes.Equal(first, second) || !answers(t.Context(), address) || len(h.sites()) != 1 {
		t.Errorf("after the server died up printed %q, and %q is there", second, h.sites())
	}
}

func TestToolSaysHowItIsUsed(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--"}, {"upp"}, {"up", "--", "true"}, {"-only", "redis"}, {"-only", "nats", "up"}, {"-only", "redis", "down"}} {
		var out, said bytes.Buffer
		if code := Tool(args, &out, &said); code != wrongUsage || said.Len() == 0 || out.Len() > 0 {
			t.Errorf("%q: code %d, said %q, printed %q", args, code, said.String(), out.String())
		}
	}
}

func TestNumberOfAnotherProcessIsNotKilled(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", "read -r line")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	right := identityOf(cmd.Process.Pid)
	parsed, err := parseIdentity(right.String())
	if err != nil || parsed != right {
		t.Errorf("%v is read as %v, %v", right, parsed, err)
	}
	if got := right.fate(); got != alive {
		t.Errorf("the fate of a process that runs is %v", got)
	}
	later, elsewhere, before := right, right, right
	later.start, elsewhere.space, before.boot = "another", "another", "another"
	for name, c := range map[string]struct {
		who  identity
		want fate
	}{
		"who began at another time":       {later, gone},
		"in another space of numbers":     {elsewhere, unknown},
		"before the machine was started":  {before, gone},
		"whose record is of another kind": {identity{pid: right.pid}, gone},
	} {
		if got := c.who.fate(); got != c.want {
			t.Errorf("the fate of a process %s is %v, want %v", name, got, c.want)
		}
	}
	_ = in.Close()
	_ = cmd.Wait()
	if got := right.fate(); got != gone {
		t.Errorf("the fate of a process that has ended is %v", got)
	}
}
