package providers

import (
	"context"
	"errors"

	"github.com/backstage-go/backstage/runtime/provider"
)

// borrow gives an opened provider the Delays and Claims of the one at an address, in a
// scope of the borrower's; without an address it gives it nothing. The lender is closed
// after the borrower, and the borrower at once if there is no lender to be had.
func borrow(ctx context.Context, p *provider.Provider, address, scope string) (*provider.Provider, error) {
	if address == "" {
		return p, nil
	}
	lender, err := openLender(ctx, address)
	if err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	p.Delays, p.Claims = lender.Lend(scope)
	closeOwn, health := p.Close, p.Health
	p.Close = func(ctx context.Context) error { return errors.Join(closeOwn(ctx), lender.Close(ctx)) }
	p.Health = func(ctx context.Context) error { return errors.Join(health(ctx), lender.Health(ctx)) }
	return p, nil
}

func openLender(ctx context.Context, address string) (*provider.Provider, error) {
	lender, err := Open(ctx, address)
	if err != nil {
		return nil, err
	}
	if lender.Lend == nil {
		err := errors.New("setting lend: want a provider that lends Delays and Claims: embedded, memory or redis")
		return nil, errors.Join(err, lender.Close(context.WithoutCancel(ctx)))
	}
	return lender, nil
}
