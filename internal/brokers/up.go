package brokers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// up makes sure that the brokers are up, and prints what a shell has to know of them.
func (t *tool) up() error {
	addresses := make(map[string]string)
	already, err := keptSites()
	if err != nil {
		return err
	}
	var missing []recipe
	for _, r := range t.recipes {
		for _, k := range already {
			if k.broker == r.name && k.running() {
				addresses[r.name] = k.address
				fmt.Fprintf(t.say, "brokers: %s is up already, on %s\n", r.name, k.address)
				break
			}
		}
		if addresses[r.name] == "" {
			missing = append(missing, r)
		}
	}
	started, err := t.start(missing)
	if err != nil {
		return err
	}
	for _, s := range started {
		if err := s.server.on.keep(s.recipe.name, s.server.Addr()); err != nil {
			return fmt.Errorf("leave %s up: %w", s.recipe.name, err)
		}
		addresses[s.recipe.name] = s.server.Addr()
	}
	fmt.Fprintf(t.out, "export %s=%s\n", Required, t.required())
	for _, r := range t.recipes {
		fmt.Fprintf(t.out, "export %s=%s\n", r.variable, addresses[r.name])
	}
	return nil
}

// running says that the servers of a site are still there, and take connections.
func (k kept) running() bool {
	if left, err := abandoned(k.dir); left || err != nil {
		return false
	}
	conn, err := net.DialTimeout("tcp", k.address, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// down takes down all that up left up.
func (t *tool) down() error {
	all, err := keptSites()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(t.say, "brokers: none are up")
	}
	var errs []error
	for _, k := range all {
		if err := takeDown(context.Background(), k.dir); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(t.say, "brokers: %s on %s is down\n", k.broker, k.address)
	}
	return errors.Join(errs...)
}
