// Package readme has the test that what the README shows works: its schema
// generates, and its program compiles against the generated code.
package readme
