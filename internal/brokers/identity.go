package brokers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// identity tells a process from a later one that got its number.
type identity struct {
	pid   int
	boot  string // of the machine
	space string // of process numbers: a container has its own
	start string // when the process began; empty if there is none
}

// String is the line of a record.
func (i identity) String() string {
	return fmt.Sprintf("%d %s %s %s", i.pid, i.boot, i.space, i.start)
}

func parseIdentity(line string) (identity, error) {
	fields := strings.SplitN(strings.TrimSpace(line), " ", 4)
	if len(fields) != 4 {
		return identity{}, fmt.Errorf("%q is no record of a process", line)
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil || pid <= 0 {
		return identity{}, fmt.Errorf("%q is no record of a process", line)
	}
	return identity{pid, fields[1], fields[2], fields[3]}, nil
}

// nowhere is the space of a system on which other processes cannot be told apart.
const nowhere = "?"

// A fate is what became of a process on record.
type fate int

const (
	// unknown processes belong to another space: nobody here can see them.
	unknown fate = iota
	alive
	gone
)

// fate says whether the process still runs. One that has ended and that nobody has
// waited for is gone.
func (i identity) fate() fate {
	now := identityOf(i.pid)
	switch {
	case now.boot != i.boot:
		return gone
	case now.space != i.space || now.space == nowhere:
		return unknown
	case now.start == "" || now.start != i.start:
		return gone
	}
	return alive
}

// The files of a site that say who owns it and which processes are its servers.
const (
	ownerFile   = "owner"
	serversFile = "servers"
)

// record replaces a file of a site in one step: whoever is killed leaves the old or the new one.
func record(dir, name string, processes ...identity) error {
	var lines strings.Builder
	for _, p := range processes {
		fmt.Fprintln(&lines, p)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", []byte(lines.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// recorded returns the processes of a file; none if there is no file.
func recorded(dir, name string) ([]identity, error) {
	content, err := os.ReadFile(filepath.Join(dir, name))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []identity
	for line := range strings.Lines(string(content)) {
		i, err := parseIdentity(line)
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}
