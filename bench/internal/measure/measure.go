// Package measure takes the figures of one run: time, processor time, allocations.
package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

// Sample is what some jobs took.
type Sample struct {
	// Jobs is how many they were.
	Jobs int
	// Wall is how long it took.
	Wall time.Duration
	// CPU is the processor time of this process meanwhile, its garbage collection
	// and its system calls included.
	CPU time.Duration
	// Allocs is how many objects it allocated.
	Allocs uint64
}

// Take runs work for a number of jobs and measures it. It collects garbage before,
// so that a run does not pay for the one before it.
func Take(jobs int, work func() error) (Sample, error) {
	runtime.GC()
	m := Start()
	err := work()
	return m.Stop(jobs), err
}

// Meter is a measurement under way.
type Meter struct {
	began  time.Time
	cpu    time.Duration
	allocs uint64
}

// Start starts measuring.
func Start() Meter {
	return Meter{allocs: allocations(), cpu: cpuTime(), began: time.Now()}
}

// Stop returns what was measured, for a number of jobs.
func (m Meter) Stop(jobs int) Sample {
	return Sample{Jobs: jobs, Wall: time.Since(m.began), CPU: cpuTime() - m.cpu, Allocs: allocations() - m.allocs}
}

func allocations() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}

// Rate returns the jobs a second.
func (s Sample) Rate() float64 { return float64(s.Jobs) / s.Wall.Seconds() }

// WallPerJob returns the microseconds a job.
func (s Sample) WallPerJob() float64 { return micros(s.Wall) / float64(s.Jobs) }

// CPUPerJob returns the microseconds of processor time a job.
func (s Sample) CPUPerJob() float64 { return micros(s.CPU) / float64(s.Jobs) }

// AllocsPerJob returns the allocations a job.
func (s Sample) AllocsPerJob() float64 { return float64(s.Allocs) / float64(s.Jobs) }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// Median returns the value in the middle of a list that is not empty.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// MedianOf returns the median of one figure of many.
func MedianOf[T any](list []T, figure func(T) float64) float64 {
	values := make([]float64, len(list))
	for i, one := range list {
		values[i] = figure(one)
	}
	return Median(values)
}

// Spread returns the least and the greatest of a list that is not empty.
func Spread(values []float64) string {
	return fmt.Sprintf("%.2f to %.2f", slices.Min(values), slices.Max(values))
}

// Machine says on what the figures were taken.
func Machine() string {
	model := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores (%s), %s, %s", runtime.GOMAXPROCS(0), model, runtime.GOOS, runtime.Version())
}

// Profile writes a processor profile to a file until stop is called. Without a
// path it does nothing.
func Profile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close() // a profile that is cut off is seen when it is read
	}, nil
}

// Dir makes a folder for a run's files, and returns it with what removes it. The
// files are made in dir, because it is the disk that is measured.
func Dir(dir string) (path string, remove func(), err error) {
	path, err = os.MkdirTemp(dir, "backstage-bench-")
	if err != nil {
		return "", nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", nil, err
	}
	return path, func() { _ = os.RemoveAll(path) }, nil // what is left lies in a temporary folder
}

// Hold makes the process's heap so many MiB larger until release is called. How
// often garbage is collected depends on how much a process holds: alone with a
// measurement, of whose jobs nothing stays, that is next to nothing, and the
// collector runs a hundred times a second.
func Hold(mib int) (release func()) {
	held := make([]byte, mib<<20)
	return func() { runtime.KeepAlive(held) }
}
