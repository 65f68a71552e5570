package command

import "runtime/debug"

const modulePath = "github.com/backstage-go/backstage"

// Unreleased is the version of what was built in a checkout.
const Unreleased = "(devel)"

// Version returns the version of Backstage that this program is part of, or
// Unreleased.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path != modulePath || info.Main.Version == "" {
		return Unreleased
	}
	return info.Main.Version
}

// VersionOf returns the version of a module that this program is made of, or
// Unreleased.
func VersionOf(module string) string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return dep.Version
			}
		}
	}
	return Unreleased
}
