package codegen

import (
	"testing"
	"time"
)

func TestDurationsAreReadAsGoWritesThemWithDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"250ms": 250 * time.Millisecond,
		"1h30m": 90 * time.Minute,
		"7d":    7 * 24 * time.Hour,
		"1d12h": 36 * time.Hour,
		"0s":    0,
		"-1s":   -time.Second,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("parseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "1", "1.5d", "-1d", "1d-2h", "1h2d", "1dd", "106752d", "106751d24h", "99999999999d", "9999999999999h"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("parseDuration(%q) = %v, want an error", text, got)
		}
	}
}

func TestBackoffIsConstantOrGrows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Backoff{
		"30s":    {30 * time.Second, 30 * time.Second},
		"1s..5m": {time.Second, 5 * time.Minute},
		"1s..1s": {time.Second, time.Second},
		".5s":    {time.Second / 2, time.Second / 2},
	} {
		if got, err := parseBackoff(text); err != nil || got != want {
			t.Errorf("parseBackoff(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "..", "1s..", "..1s", "5m..1s", "0s", "0s..1s", "1s..2s..3s", "1s...2s", "1s...5m", "1s-5m", "1s .. 5m"} {
		if got, err := parseBackoff(text); err == nil {
			t.Errorf("parseBackoff(%q) = %v, want an error", text, got)
		}
	}
}

func TestDurationsAreWrittenAsPeopleSayThem(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		24 * time.Hour:                    "24h",
		48 * time.Hour:                    "2d",
		36 * time.Hour:                    "1d12h",
		7 * 24 * time.Hour:                "7d",
		time.Hour:                         "1h",
		90 * time.Minute:                  "1h30m",
		time.Minute:                       "1m",
		90 * time.Second:                  "1m30s",
		10 * time.Minute:                  "10m",
		250 * time.Millisecond:            "250ms",
		25*time.Hour + 20*time.Minute:     "25h20m",
		3*24*time.Hour + 10*time.Second:   "72h0m10s",
		10*time.Hour + 30*time.Nanosecond: "10h0m0.00000003s",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("formatDuration(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestNearestSuggestsOnlyWhatIsNear(t *testing.T) {
	t.Parallel()
	names := []string{"ChargeCard", "SendReceipt", "ShipOrder"}
	for name, want := range map[string]string{
		"SendReciept": "SendReceipt",
		"sendreceipt": "SendReceipt",
		"ShipOrders":  "ShipOrder",
		"Refund":      "",
		"Charge":      "ChargeCard",
		"Ch":          "",
		"":            "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
