package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// moment is a flag's time: so long ago, or a point in time. The zero value is none.
type moment struct {
	text string
	ago  time.Duration
	at   time.Time
}

// String returns what was written.
func (m *moment) String() string { return m.text }

// Set reads "90m", "7d", "1d12h", "2025-10-31" or "2025-10-31T12:00:00Z".
func (m *moment) Set(s string) error {
	*m = moment{text: s}
	if ago, err := duration(s); err == nil && ago >= 0 {
		m.ago = ago
		return nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, s, time.UTC); err == nil {
			m.at = at
			return nil
		}
	}
	return fmt.Errorf("write how long ago, like 90m or 7d, or a time, like 2025-10-31 (UTC) or 2025-10-31T12:00:00Z")
}

// before returns the point in time, as seen from now; zero for none.
func (m *moment) before(now time.Time) time.Time {
	if m.text == "" || !m.at.IsZero() {
		return m.at
	}
	return now.Add(-m.ago)
}

// duration reads a duration with days: "1d12h".
func duration(s string) (time.Duration, error) {
	days, rest, hasDays := strings.Cut(s, "d")
	if !hasDays {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	d := time.Duration(n) * 24 * time.Hour
	if err != nil || rest == "" {
		return d, err
	}
	more, err := time.ParseDuration(rest)
	if more < 0 {
		err = strconv.ErrRange
	}
	return d + more, err
}
