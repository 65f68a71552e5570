// Package schema holds the language of Backstage: the options that users write
// in their .proto files and the record that is stored on every broker. The Go of
// both is in backstage/v1 below; the sources are embedded here, so that nobody
// has to keep a copy of them.
package schema

import "embed"

// Files has the schema files under the paths by which they are imported, such as
// "backstage/v1/options.proto".
//
//go:embed backstage/v1/*.proto
var Files embed.FS
