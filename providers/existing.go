package providers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/backstage-go/backstage/runtime/provider"
)

// OpenExisting is Open for tools that look at what others have stored. It refuses
// what Open would make anew, so that a slip in an address does not look like a store
// without jobs: an embedded file that is not there, and memory, which no other
// process can see.
func OpenExisting(ctx context.Context, address string) (*provider.Provider, error) {
	a, err := parse(address)
	if err != nil {
		return nil, a.failed(err)
	}
	switch a.scheme {
	case "memory":
		return nil, a.failed(errors.New("memory is gone with its process, and no other can look into it"))
	case "embedded":
		if _, err := os.Stat(a.path); a.path != "" && errors.Is(err, fs.ErrNotExist) {
			return nil, a.failed(fmt.Errorf("there is no file %s, and none is made", a.path))
		}
	}
	return Open(ctx, address)
}
