package codegen

import (
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"

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
		if isCopy(x.Desc) {
			l.importers(file, fmt.Sprintf("%s is a copy of %s under another path; import %q instead and delete the copy", file.Desc.Path(), OptionsPath, OptionsPath))
			return
		}
		if tookNumber(x.Desc) {
			l.importers(file, fmt.Sprintf("%s has option %s with number %d, which belongs to %s", file.Desc.Path(), x.Desc.FullName(), x.Desc.Number(), OptionsPath))
		}
	}
}

func isCopy(x protoreflect.ExtensionDescriptor) bool {
	name := x.FullName()
	return name == backstagev1.E_Task.TypeDescriptor().FullName() || name == backstagev1.E_Defaults.TypeDescriptor().FullName()
}

func tookNumber(x protoreflect.ExtensionDescriptor) bool {
	extended := x.ContainingMessage().FullName()
	return extended == "google.protobuf.MethodOptions" && x.Number() == backstagev1.E_Task.TypeDescriptor().Number() ||
		extended == "google.protobuf.ServiceOptions" && x.Number() == backstagev1.E_Defaults.TypeDescriptor().Number()
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
