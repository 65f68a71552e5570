package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/backstage-go/backstage/providers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// place is where the shop is: the broker that a URL names, and a folder for its
// own database. All its processes are given the same two, by flags or by the
// environment.
type place struct {
	url, data string
}

func placeFlags(flags *flag.FlagSet) *place {
	p := new(place)
	flags.StringVar(&p.url, "url", "", "`address` of the broker, such as redis://127.0.0.1:6379/0 (default: BACKSTAGE_URL, then a file in the data folder, without a server)")
	flags.StringVar(&p.data, "data", cmp.Or(os.Getenv("SHOP_DATA"), "shop-data"), "`folder` of the shop's own database, made if it is not there; SHOP_DATA changes the default")
	return p
}

// parse reads a command's flags. It ends the process where they are wrong, as
// flag.ExitOnError does.
func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s takes flags only, not %q", flags.Name(), flags.Arg(0))
	}
	return nil
}

// shop is what each of its processes has open.
type shop struct {
	provider *provider.Provider
	ledger   *ledger
}

// open opens all of it, and makes what is not there yet.
func (p *place) open(ctx context.Context) (s *shop, err error) {
	if err := os.MkdirAll(p.data, 0o700); err != nil {
		return nil, err
	}
	p.url = cmp.Or(p.url, os.Getenv("BACKSTAGE_URL"), "embedded:"+filepath.Join(p.data, "queue.db"))
	s = new(shop)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.provider, err = providers.Open(ctx, p.url); err != nil {
		return s, err
	}
	if !s.provider.Jobs.Facts().Durable {
		return s, fmt.Errorf("provider %s keeps its jobs in one process, and the shop has several; name another by -url", s.provider.Name)
	}
	s.ledger, err = openLedger(ctx, filepath.Join(p.data, "ledger.db"))
	return s, err
}

// close closes all that is open, also when the process has been told to stop: what
// is under way gets a moment.
func (s *shop) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var errs []error
	if s.provider != nil {
		errs = append(errs, s.provider.Close(ctx))
	}
	if s.ledger != nil {
		errs = append(errs, s.ledger.close())
	}
	return errors.Join(errs...)
}
