package compile

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/ast"

	"github.com/backstage-go/backstage/codegen"
	backstagev1 "github.com/backstage-go/backstage/schema/backstage/v1"
)

// crashed explains that the compiler did not survive a schema. It is known not to
// when the name of an option's field is right but for capitals, as in Queue: "mail".
func (s sources) crashed(crash protocompile.PanicError) codegen.Diagnostics {
	found := s.capitals(crash.File)
	if found == nil {
		found = codegen.Diagnostics{{
			Pos:     codegen.Position{File: crash.File, Line: 1, Column: 1},
			Message: fmt.Sprintf("the compiler does not survive this schema (%v); the likeliest cause is a name in an option", crash.Value),
		}}
	}
	return found
}

// capitals finds the fields in the options of a schema that are not written in
// lower case.
func (s sources) capitals(name string) codegen.Diagnostics {
	if s[name] == nil || s[name].tree == nil {
		return nil
	}
	var out codegen.Diagnostics
	// The walk itself cannot fail: its function returns no error.
	_ = ast.Walk(s[name].tree, &ast.SimpleVisitor{DoVisitMessageFieldNode: func(n *ast.MessageFieldNode) error {
		if written := n.Name.Value(); !n.Name.IsExtension() && written != strings.ToLower(written) {
			out = append(out, codegen.Diagnostic{
				Pos:     span(s[name].tree.NodeInfo(n.Name)),
				Message: fmt.Sprintf("there is no field %s in the option", written),
				Hint:    fmt.Sprintf("did you mean %s?", cmp.Or(codegen.Nearest(written, optionNames((*backstagev1.TaskOptions)(nil))), strings.ToLower(written))),
			})
		}
		return nil
	}})
	return out
}
