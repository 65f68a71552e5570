package brokers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// keptFile is in a site that stays up without an owner. It says which broker is there,
// and at which address.
const keptFile = "kept"

// kept is a site that stays up.
type kept struct {
	dir, broker, address string
}

// keep makes a site one that stays up. Its owner has no more part in it.
func keep(dir, broker, address string) error {
	return os.WriteFile(filepath.Join(dir, keptFile), []byte(broker+" "+address), 0o600)
}

// sites returns the folders of all sites of this user.
func sites() ([]string, error) {
	root, err := root()
	if err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(root, "*", "site-*"))
}

// keptSites returns the sites that stay up.
func keptSites() ([]kept, error) {
	dirs, err := sites()
	if err != nil {
		return nil, err
	}
	var all []kept
	for _, dir := range dirs {
		content, err := os.ReadFile(filepath.Join(dir, keptFile))
		if err != nil {
			continue // it has an owner, or was taken down just now
		}
		broker, address, _ := strings.Cut(string(content), " ")
		all = append(all, kept{dir, broker, address})
	}
	return all, nil
}

// settling is how long a site may be without a record, because somebody is making it.
const settling = time.Minute

// sweep takes down the sites whose owners have died, and gives free what they held. Of
// a site of which it cannot tell, it touches nothing.
func sweep(ctx context.Context) error {
	dirs, err := sites()
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		if left, err := abandoned(dir); err != nil {
			errs = append(errs, fmt.Errorf("look at %s: %w", dir, err))
		} else if left {
			errs = append(errs, takeDown(ctx, dir))
		}
	}
	return errors.Join(append(errs, sweepClaims())...)
}

// sweepClaims gives blocks free that are claimed by nobody any more.
func sweepClaims() error {
	root, err := root()
	if err != nil {
		return err
	}
	blocks, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, block := range blocks {
		folder := filepath.Join(root, block.Name())
		if info, err := os.Stat(folder); err == nil && time.Since(info.ModTime()) > settling {
			_ = os.Remove(folder) // fails as it must while a site is in it
		}
	}
	return nil
}

// abandoned says that nobody needs a site any more: its owner has died, or it stays up
// and nothing in it runs.
func abandoned(dir string) (bool, error) {
	if _, err := os.Stat(filepath.Join(dir, keptFile)); err == nil {
		if composed(dir) {
			return false, nil // only Docker knows
		}
		return allGone(dir, serversFile)
	}
	if _, err := os.Stat(filepath.Join(dir, ownerFile)); errors.Is(err, os.ErrNotExist) {
		info, err := os.Stat(dir)
		return err == nil && time.Since(info.ModTime()) > settling, nil
	}
	return allGone(dir, ownerFile)
}

func allGone(dir, file string) (bool, error) {
	processes, err := recorded(dir, file)
	if err != nil {
		return false, err
	}
	for _, p := range processes {
		if p.fate() != gone {
			return false, nil
		}
	}
	return true, nil
}

// takeDown kills what still runs in a site, and removes it.
func takeDown(ctx context.Context, dir string) error {
	servers, err := recorded(dir, serversFile)
	if err != nil {
		return fmt.Errorf("take down %s: %w", dir, err)
	}
	for _, server := range servers {
		if server.fate() != alive {
			continue
		}
		if err := killAll(server.pid); err != nil {
			return fmt.Errorf("take down %s: %w", dir, err)
		}
		err := until(ctx, starting, func(context.Context) error {
			if server.fate() == alive {
				return fmt.Errorf("process %d is still there", server.pid)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("take down %s: %w", dir, err)
		}
	}
	if composed(dir) {
		if err := composeDown(ctx, dir); err != nil {
			return fmt.Errorf("take down %s: %w", dir, err)
		}
	}
	return (&site{dir: dir}).remove()
}
