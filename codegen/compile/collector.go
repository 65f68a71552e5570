package compile

import (
	"errors"

	"github.com/bufbuild/protocompile/reporter"

	"github.com/backstage-go/backstage/codegen"
)

// A collector takes all errors of the compiler, where the compiler by itself
// would stop at the first.
type collector struct {
	found codegen.Diagnostics
	// other is an error without a place.
	other error
}

func (c *collector) reporter() reporter.Reporter {
	return reporter.NewReporter(func(err reporter.ErrorWithPos) error {
		c.add(err)
		return nil
	}, nil)
}

// add takes an error, once.
func (c *collector) add(err error) {
	if err == nil || errors.Is(err, reporter.ErrInvalidSource) {
		return
	}
	var at reporter.ErrorWithPos
	if !errors.As(err, &at) {
		c.other = errors.Join(c.other, err)
		return
	}
	d := codegen.Diagnostic{Pos: span(at), Message: at.Unwrap().Error()}
	for _, have := range c.found {
		if have.Pos == d.Pos && have.Message == d.Message {
			return
		}
	}
	c.found = append(c.found, d)
}
