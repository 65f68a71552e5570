package providers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/backstage-go/backstage/runtime/provider"
)

// OpenExisting is Open for tools that look at what others have stored. It refuses
// what Open would make anew, so that a slip in an address does not look like a store
// without jobs: an embedded file that is not there, and memory, which no other
// process can see.
func OpenExisting(ctx context.Context, address string) (*provider.Provider, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch scheme {
	case "memory":
		return nil, fmt.Errorf("provider address %q: memory is gone with its process, and no other can look into it", address)
	case "embedded":
		path, _, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "?")
		if _, err := os.Stat(path); path != "" && errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("provider address %q: there is no file %s, and none is made", address, path)
		}
	}
	return Open(ctx, address)
}
