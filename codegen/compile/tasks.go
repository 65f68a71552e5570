package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/backstage-go/backstage/codegen"
)

// withoutTasks warns when no schema has a task service. Most often an option was
// forgotten, and everything else would look as if it had worked.
func (p *Project) withoutTasks() codegen.Diagnostics {
	if p.Diagnostics.Errors() != nil {
		return nil // which may be why
	}
	for _, s := range p.Tasks.Services {
		if s.Generate {
			return nil
		}
	}
	d := codegen.Diagnostic{
		Severity: codegen.Warning,
		Pos:      codegen.Position{File: p.Schemas[0]},
		Message: fmt.Sprintf("no task service in %s; a service is one when it has option (backstage.v1.defaults), or one of its rpcs option (backstage.v1.task)",
			p.seen()),
	}
	for _, file := range p.plugin.Files {
		if file.Generate && len(file.Services) > 0 {
			d.Pos = codegen.PositionOf(file.Services[0])
			d.Near = string(file.Services[0].Desc.Name())
			d.Hint = "is this to be one? Then add"
			d.Paste = []string{fmt.Sprintf("import %q;", codegen.OptionsPath), "option (backstage.v1.defaults) = {};"}
			break
		}
	}
	return codegen.Diagnostics{d}
}

// seen names the schemas, the first few of many.
func (p *Project) seen() string {
	const most = 3
	var names []string
	for _, name := range p.Schemas {
		names = append(names, p.shown(name))
	}
	slices.Sort(names)
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
