package brokers

import "testing"

func TestRedisComesBackWithItsData(t *testing.T) {
	t.Parallel()
	r := RequireRedis(t, RedisOptions{Args: []string{"--appendfsync", "always"}})
	if _, err := r.do(t.Context(), "SET", "key", "kept"); err != nil {
		t.Fatal(err)
	}
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.do(t.Context(), "PING"); err == nil {
		t.Error("a killed server answers")
	}
	if err := r.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := r.do(t.Context(), "GET", "key"); err != nil || got != "kept" {
		t.Errorf("after the restart the key is %q, %v; want kept", got, err)
	}
}
