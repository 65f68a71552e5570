package codegen

import (
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"

	backstagev1 "github.com/backstage-go/backstage/schema/backstage/v1"
)

// foreignOptions refuses a copy of the options under another path, and an
// option of somebody else that took our number: a program that links either
// beside ours dies when it starts.
func (l *loader) foreignOptions(file *protogen.File) {
	if file.Desc.Path() == OptionsPath {
		return
	}
	for _, x := range file.Extensions {
		number := backstagev1.E_Task.TypeDescriptor().Number()
		extendee := x.Desc.ContainingMessage().FullName()
		switch {
		case x.Desc.FullName() == backstagev1.E_Task.TypeDescriptor().FullName():
			l.importers(file, fmt.Sprintf("%s is a copy of %s under another path; import %q instead and delete the copy", file.Desc.Path(), OptionsPath, OptionsPath))
		case x.Desc.Number() == number && (extendee == "google.protobuf.MethodOptions" || extendee == "google.protobuf.ServiceOptions"):
			l.importers(file, fmt.Sprintf("%s has option %s with number %d, which belongs to %s", file.Desc.Path(), x.Desc.FullName(), number, OptionsPath))
		}
	}
}

// importers reports a bad file where it is generated or imported.
func (l *loader) importers(bad *protogen.File, message string) {
	l.errorf(Position{File: bad.Desc.Path(), Line: 1, Column: 1}, "%s", message)
	for _, f := range l.gen.Files {
		list := f.Desc.Imports()
		for i := range list.Len() {
			if list.Get(i).Path() == bad.Desc.Path() {
				l.report(positionAt(f.Desc, []int32{fileDependency, int32(i)}), complaint{message: message, near: `"` + bad.Desc.Path() + `"`})
			}
		}
	}
}
