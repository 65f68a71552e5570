package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Info returns a section of what the server says of itself.
func (s *Server) Info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.client.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// CPU returns the processor time that the server has used, in its own process.
func (s *Server) CPU(ctx context.Context) (time.Duration, error) {
	info, err := s.Info(ctx, "cpu")
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info[field], 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", field, err)
		}
		total += time.Duration(seconds * float64(time.Second))
	}
	return total, nil
}

// Calls counts commands by their names.
type Calls map[string]int64

// Executed returns how often the server has executed each command, those inside
// scripts included, since its statistics were last reset.
func (s *Server) Executed(ctx context.Context) (Calls, error) {
	info, err := s.Info(ctx, "commandstats")
	if err != nil {
		return nil, err
	}
	calls := make(Calls)
	for field, value := range info {
		name, ok := strings.CutPrefix(field, "cmdstat_")
		if !ok {
			continue
		}
		count, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		if calls[name], err = strconv.ParseInt(count, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
	}
	return calls, nil
}

// Total returns the sum.
func (c Calls) Total() int64 {
	var total int64
	for _, n := range c {
		total += n
	}
	return total
}

// Per prints each command's share of a number of things, the most frequent first,
// and leaves out what is next to nothing.
func (c Calls) Per(things float64) string {
	names := slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		if c[a] != c[b] {
			return int(c[b] - c[a])
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names {
		if share := float64(c[name]) / things; share >= 0.005 {
			parts = append(parts, fmt.Sprintf("%s %.2f", strings.ToLower(name), share))
		}
	}
	return strings.Join(parts, ", ")
}
