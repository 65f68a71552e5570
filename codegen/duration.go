package codegen

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	day = 24 * time.Hour
	// longest is the longest time that the runtime takes, far from the bounds of
	// times.
	longest = 100 * 365 * day
)

// A Backoff is the wait before a retry: constant when Min equals Max, else
// exponential from Min to Max.
type Backoff struct {
	Min, Max time.Duration
}

// parseDuration reads a duration as Go writes it, with days in front if need
// be: "250ms", "1h30m", "7d", "1d12h".
func parseDuration(s string) (time.Duration, error) {
	days, rest, hasDays := strings.Cut(s, "d")
	if !hasDays {
		return goDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 31)
	if err != nil || n > uint64((1<<63-1)/day) {
		return 0, notADuration(s)
	}
	d := time.Duration(n) * day
	if rest == "" {
		return d, nil
	}
	more, err := goDuration(rest)
	if err != nil || more < 0 || d+more < d {
		return 0, notADuration(s)
	}
	return d + more, nil
}

func goDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, notADuration(s)
	}
	return d, nil
}

func notADuration(s string) error {
	return fmt.Errorf("%q is no duration; write it like \"250ms\", \"30s\", \"1h30m\" or \"7d\"", s)
}

// IsDuration says whether options take a text as a duration.
func IsDuration(s string) bool {
	_, err := parseDuration(s)
	return err == nil
}

func parsePositive(s string) (time.Duration, error) {
	d, err := parseDuration(s)
	switch {
	case err != nil:
		return 0, err
	case d == 0:
		return 0, errors.New("an explicit zero means nothing; leave the option out for the default")
	case d < 0:
		return 0, fmt.Errorf("%q is negative", s)
	case d > longest:
		return 0, fmt.Errorf("%q is longer than a hundred years (%s)", s, formatDuration(longest))
	}
	return d, nil
}

// parseBackoff reads "30s" as constant and "1s..5m" as exponential.
func parseBackoff(s string) (Backoff, error) {
	low, high, exponential := strings.Cut(s, "..")
	if !exponential {
		high = low
	}
	if !IsDuration(low) || !IsDuration(high) || exponential && strings.HasPrefix(high, ".") {
		return Backoff{}, notABackoff(s)
	}
	least, err := parsePositive(low)
	if err != nil {
		return Backoff{}, err
	}
	most, err := parsePositive(high)
	if err != nil {
		return Backoff{}, err
	}
	if most < least {
		return Backoff{}, fmt.Errorf("%q shrinks; write the shorter wait first", s)
	}
	return Backoff{Min: least, Max: most}, nil
}

func notABackoff(s string) error {
	return fmt.Errorf("%q is no backoff; write one duration for a constant wait, like \"30s\", or two with .. between them for one that grows, like \"1s..5m\"", s)
}

// formatDuration writes a duration as people say it: 7d, 24h, 1h30m, 5s.
func formatDuration(d time.Duration) string {
	if d > day && d%time.Hour == 0 {
		if d%day == 0 {
			return strconv.FormatInt(int64(d/day), 10) + "d"
		}
		return strconv.FormatInt(int64(d/day), 10) + "d" + formatDuration(d%day)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
