// Package codegen turns task services into Go: it reads the options of a schema
// into a model ([Load]), checks everything that can be wrong with them and says
// where ([Diagnostics]), and writes a package for each service ([Generate]). It
// serves the plugin and the command alike; package compile feeds it without
// protoc or buf.
package codegen
