// Package rules has no code of its own: its tests hold the repository to the rules
// that it set itself. Who may import whom is a table in imports_test.go, with the
// reason beside each line. The laws of how code is written (what is documented, how
// long things may get, what a package may keep in variables) are in files of their
// own, each with examples that break it.
//
// A test that fails names the place, the rule and its reason. A rule that has become
// wrong is changed here, where a reviewer sees it; there are no exceptions in the
// code that is ruled.
package rules
