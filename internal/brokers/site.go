package brokers

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// A block of ports is claimed by making a folder with its first port as its name.
const (
	firstPort = 10000
	lastPort  = 19999
	blockSize = 10
	// beside is what brokers add to a port for a second one, such as a cluster's bus.
	beside = 10000
)

// site is the place of servers that belong together: a folder and a block of ports
// that nobody else has.
type site struct {
	dir   string
	base  int // the first port
	ports int // how many are used
}

// port returns the port of the i-th server; what it returns plus beside is free too.
func (s *site) port(i int) int { return s.base + i }

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// root is the folder below which all sites of this user are.
func root() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("backstage-brokers-%d", os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("the folder of all brokers: %w", err)
	}
	// Others may write where temporary files are: what they put there is not ours.
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("the folder of all brokers: %w", err)
	}
	if !info.IsDir() || !mine(info) {
		return "", fmt.Errorf("%s belongs to somebody else: remove it, or set TMPDIR to a folder of your own", dir)
	}
	return dir, nil
}

// claim makes a site of which the first n ports are free. Its owner is this process.
func claim(n int) (*site, error) {
	root, err := root()
	if err != nil {
		return nil, err
	}
	blocks := rand.Perm((lastPort - firstPort + 1) / blockSize)
	for _, block := range blocks {
		s := &site{base: firstPort + block*blockSize, ports: n}
		folder := filepath.Join(root, strconv.Itoa(s.base))
		if err := os.Mkdir(folder, 0o700); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("claim ports: %w", err)
		}
		if !s.free() {
			_ = os.Remove(folder)
			continue
		}
		// The name within the block is used once, so that a late removal of an earlier
		// site never meets a later one.
		if s.dir, err = os.MkdirTemp(folder, "site-"); errors.Is(err, fs.ErrNotExist) {
			continue // the block looked abandoned, and was taken away
		} else if err != nil {
			return nil, fmt.Errorf("claim ports: %w", err)
		}
		if err := record(s.dir, ownerFile, identityOf(os.Getpid())); err != nil {
			return nil, errors.Join(fmt.Errorf("claim ports: %w", err), s.remove())
		}
		return s, nil
	}
	return nil, fmt.Errorf("no %d free ports between %d and %d: look for folders that nobody needs in %s", n, firstPort, lastPort, root)
}

func (s *site) free() bool {
	for i := range s.ports {
		if !free(s.port(i)) || !free(s.port(i)+beside) {
			return false
		}
	}
	return true
}

// free says that nobody listens on a port.
func free(port int) bool {
	listener, err := net.Listen("tcp", local(port))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

// remove gives the folder and the ports back.
func (s *site) remove() error {
	err := os.RemoveAll(s.dir)
	_ = os.Remove(filepath.Dir(s.dir)) // stays if another site is in it
	return err
}
