package codegen

import (
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Field numbers of descriptor.proto, of which the paths to places are made.
const (
	fileDependency     = 3
	fileService        = 6
	fileOptions        = 8
	fileOptionsGoPkg   = 11
	fileWeakDependency = 11
	serviceOptions     = 3
	methodOutput       = 3
	methodOptions      = 4
	methodClient       = 5
	methodServer       = 6
	anyName            = 1
)

// positionAt returns the place of a path. Compilers differ in how deep they
// record places: our own goes into the literals of options, protoc stops at the
// option statement. So it takes the deepest place that is known.
func positionAt(file protoreflect.FileDescriptor, path protoreflect.SourcePath) Position {
	for n := len(path); n > 0; n-- {
		loc := file.SourceLocations().ByPath(path[:n:n])
		if loc.Path == nil {
			continue
		}
		return Position{
			File:      file.Path(),
			Line:      loc.StartLine + 1,
			Column:    loc.StartColumn + 1,
			EndLine:   loc.EndLine + 1,
			EndColumn: loc.EndColumn + 1,
		}
	}
	return Position{File: file.Path()}
}

// PositionOf returns the place of a service's name.
func PositionOf(s *protogen.Service) Position {
	return positionAt(s.Desc.ParentFile(), append(append(protoreflect.SourcePath{}, s.Location.Path...), anyName))
}

// positionIn returns the place of something inside an element of a schema.
func positionIn(file *protogen.File, element protogen.Location, path ...int32) Position {
	whole := append(append(protoreflect.SourcePath{}, element.Path...), path...)
	return positionAt(file.Desc, whole)
}
