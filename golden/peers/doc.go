// Package peers holds one module of schemas over which three generators run:
// ours, that of gRPC and that of connect. It has a go.mod of its own, so that
// nobody who uses Backstage gets theirs.
package peers
