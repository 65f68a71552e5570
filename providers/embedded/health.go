package embedded

import (
	"context"
	"fmt"
	"time"
)

// probePatience is how long Health waits for its own transaction.
const probePatience = blockedAfter + time.Second

// health makes an empty transaction, as every call does, or, after an error, one
// that writes: provider.Provider.Health.
func (s *store) health(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	err := s.do(within, func(t *transaction) error {
		if s.writer.block.cause() != nil {
			t.probe()
		}
		return nil
	})
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("embedded file %s takes no writes: %w", s.path, err)
	}
	return err
}

// probe needs room in the file, and leaves nothing there.
func (t *transaction) probe() {
	n := t.next()
	t.exec("insert into job (n, q, key, body) values (?, 0, 0, zeroblob(16384))", n)
	t.exec(sqlDropJob, n)
	t.grew = true
}
