package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/backstage-go/backstage/runtime/provider"
)

// The oldest server that has all that the scripts need: flags of scripts, and XCLAIM
// that acknowledges entries which were deleted.
const oldestMajor, oldestMinor = 7, 0

// inspect connects, and looks at the server that has the namespace.
func (s *store) inspect(ctx context.Context) error {
	info := make(map[string]string)
	err := s.link.to(ctx, s.keys.registry(), func(server *redis.Client) error {
		for _, section := range []string{"server", "persistence", "memory"} {
			text, err := server.Info(ctx, section).Result()
			if err != nil {
				return err
			}
			readInfo(info, text)
		}
		return nil
	})
	if keepsInfo(err) {
		s.degraded("its version, persistence and eviction cannot be seen, and may not be as they should", err)
		return nil
	}
	if err != nil {
		var known *Error
		if errors.As(err, &known) {
			return err
		}
		return unreachable(err) // ctx ended
	}
	if err := checkVersion(info["redis_version"]); err != nil {
		return err
	}
	for _, w := range weaknesses(info) {
		s.degraded(w, nil)
	}
	return nil
}

// keepsInfo reports whether a server keeps INFO from its users, as some that are managed
// by others do.
func keepsInfo(err error) bool {
	r, known := refusalOf(err)
	return err != nil && !broken(err) && (!known || r.word == "NOPERM")
}

func (s *store) degraded(message string, err error) {
	s.news.events.EmitEarly(provider.Event{Provider: name, Kind: provider.Degraded, Message: message, Err: err})
}

// readInfo reads what INFO answers.
func readInfo(into map[string]string, text string) {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			into[key] = value
		}
	}
}

// checkVersion refuses a server that is too old. One that does not tell its version
// is taken for new enough.
func checkVersion(version string) error {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return nil
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil {
		return nil
	}
	if major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return setupError("the server is Redis "+version, fmt.Sprintf("use %d.%d or newer", oldestMajor, oldestMinor))
	}
	return nil
}

// weaknesses says how the server's settings may lose jobs, or a part of what they
// need.
func weaknesses(info map[string]string) []string {
	var found []string
	switch info["aof_enabled"] {
	case "0":
		found = append(found, "the append-only file is off (appendonly no): when Redis stops, all since its last snapshot is lost; set appendonly yes")
	case "1":
	default:
		found = append(found, "whether there is an append-only file cannot be seen")
	}
	policy, known := info["maxmemory_policy"]
	switch {
	case !known:
		found = append(found, "whether keys are evicted cannot be seen")
	case strings.HasPrefix(policy, "allkeys-"):
		found = append(found, "keys are evicted when memory is short (maxmemory-policy "+policy+"), and jobs with them; set maxmemory-policy noeviction")
	case strings.HasPrefix(policy, "volatile-"):
		found = append(found, "claims are evicted when memory is short (maxmemory-policy "+policy+"), so that duplicates may run; set maxmemory-policy noeviction")
	}
	return found
}
