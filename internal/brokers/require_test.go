//go:build unix

package brokers

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// itself runs a test of this package in a process of its own.
func itself(t *testing.T, test string, environment ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run", "^"+test+"$", "-test.v")
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "BACKSTAGE_") && !strings.HasPrefix(variable, "PATH=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, environment...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestWithoutBrokersTestsAreSkippedAndSayHowToGetThem(t *testing.T) {
	t.Parallel()
	for _, environment := range [][]string{{"PATH="}, {"PATH=", Required + "=kafka"}} {
		out, err := itself(t, "TestRedisComesBackWithItsData", environment...)
		if want := "needs Redis: run `make test`, or `eval \"$(make -s brokers)\"` first"; err != nil || !strings.Contains(out, want) || !strings.Contains(out, "--- SKIP") {
			t.Errorf("%q: %v, want a test that is skipped and says %q:\n%s", environment, err, want, out)
		}
	}
}

func TestRequiredBrokerThatIsMissingFailsTheTest(t *testing.T) {
	t.Parallel()
	out, err := itself(t, "TestRedisComesBackWithItsData", "PATH=", Required+"=1")
	for _, want := range []string{"redis-server is not in the PATH", "docker is not in the PATH", "install Redis 7.0 or newer"} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%v, want a test that fails and says %q:\n%s", err, want, out)
		}
	}
}

func TestSharedServerThatIsGoneFailsTheTest(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{
		RedisAddress + "=":            RedisAddress + " is not",
		RedisAddress + "=127.0.0.1:1": "does not answer",
	} {
		out, err := itself(t, "TestSharedRedisAnswers", Required+"=1", variable)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want a test that fails and says %q:\n%s", variable, err, want, out)
		}
	}
}

func TestSharedRedisAnswers(t *testing.T) {
	t.Parallel()
	if !answers(t.Context(), SharedRedis(t)) {
		t.Error("the shared server does not answer")
	}
}
