package compile

import (
	"errors"

	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/reporter"

	"github.com/backstage-go/backstage/codegen"
)

// A collector takes all errors of the compiler, where the compiler by itself
// would stop at the first.
type collector struct {
	found codegen.Diagnostics
	// other is an error without a place.
	other error
	// unused are imports that nothing in their file needs.
	unused []unusedImport
}

// An unusedImport is an import of a schema that it does not need to compile.
type unusedImport struct {
	name string
	pos  codegen.Position
}

func (c *collector) reporter() reporter.Reporter {
	return reporter.NewReporter(func(err reporter.ErrorWithPos) error {
		c.add(err)
		return nil
	}, c.warn)
}

// warn keeps the one kind of warning that says something: the others are about
// syntax statements and such.
func (c *collector) warn(err reporter.ErrorWithPos) {
	var unused linker.ErrorUnusedImport
	if errors.As(err, &unused) {
		c.unused = append(c.unused, unusedImport{unused.UnusedImport(), span(err)})
	}
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
