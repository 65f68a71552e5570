package backstage

import (
	"cmp"
	"context"
	"errors"
)

// Enqueuer takes jobs: a *Client, or in tests a recorder. Generated clients are
// made over one.
type Enqueuer interface {
	// Enqueue stores jobs, of one task or of several, and returns a receipt for
	// each, in their order. All are checked before any is sent. The error joins
	// the *EnqueueError of each job that was not stored or may not be; nil means
	// that every job is stored or a duplicate.
	Enqueue(ctx context.Context, jobs ...Job) ([]Receipt, error)
	// Check returns a *MissingError for each task that needs what the provider
	// behind it lacks, joined.
	Check(needs ...Needs) error
}

var errNoReceipt = errors.New("there is not one receipt for each job: an interceptor must return one for each that it is given")

// Enqueue stores one job. Generated clients call it.
func Enqueue(ctx context.Context, e Enqueuer, job Job) (Receipt, error) {
	receipts, err := e.Enqueue(ctx, job)
	if len(receipts) != 1 {
		err = cmp.Or(err, errNoReceipt)
		return Receipt{ID: job.ID(), Outcome: Unknown, Err: err}, err
	}
	return receipts[0], cmp.Or(receipts[0].Err, err)
}
