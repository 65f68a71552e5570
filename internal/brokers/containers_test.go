//go:build unix

package brokers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What follows runs against a stub in place of the docker command.

func TestServersInContainersBehaveAsProcessesDo(t *testing.T) {
	requireProgram(t, redisRecipe())
	calls := pretend(t)
	t.Setenv("TMPDIR", t.TempDir())
	for name, check := range map[string]func(*testing.T){
		"crash":    checkCrash,
		"pause":    checkPause,
		"tls":      checkTLS,
		"cluster":  checkCluster,
		"sentinel": checkSentinel,
	} {
		t.Run(name, check)
	}
	called, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(called), " down --volumes"); n != 5 {
		t.Errorf("%d sites were taken down, want 5:\n%s", n, called)
	}
	if left, err := sites(); err != nil || len(left) > 0 {
		t.Errorf("these sites are left: %q, %v", left, err)
	}
}

func TestKafkaInAContainerBehavesAsAProcessDoes(t *testing.T) {
	requireProgram(t, kafkaRecipe())
	calls := pretend(t)
	t.Setenv("TMPDIR", t.TempDir())
	checkKafkaCrash(t)
	if called := read(t, calls); strings.Count(called, " down --volumes") != 1 {
		t.Errorf("its site was not taken down once:\n%s", called)
	}
}

func TestServerInAContainerSaysWhyItDoesNotStart(t *testing.T) {
	requireProgram(t, redisRecipe())
	pretend(t)
	t.Setenv("TMPDIR", t.TempDir())
	p, err := redisRecipe().find(t.Context())
	if err != nil || p.image == "" {
		t.Fatalf("found %v, %v; want an image", p, err)
	}
	s, on, err := p.open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer on.close()
	r, err := newRedis(p, on, "redis", s.port(0), RedisOptions{Args: []string{"--no-such-option", "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := on.start(t.Context(), r.spec); err != nil {
		t.Fatal(err)
	}
	if err := until(t.Context(), starting, func(context.Context) error {
		if said := r.Log(); !strings.Contains(said, "no-such-option") {
			return errors.New("its log says: " + said)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestComposeFileForUsersHasTheSameImages(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join("..", "..", "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recipes() {
		if !strings.Contains(string(content), "image: "+r.image+"\n") {
			t.Errorf("compose.yaml does not have the image of %s, %s", r.name, r.image)
		}
	}
}
