package provider

import (
	"context"
	"time"
)

// Claims keeps keys, each for one owner at a time: for dedupe, locks and schedule
// ticks.
type Claims interface {
	// Claim takes each key for its owner, or refreshes it if that owner has it,
	// and returns for each, in order, who holds it now. A key of another owner is
	// left as it is. A pending refresh never weakens a confirmed claim, and no
	// refresh makes a claim shorter. An error means that none of it is known.
	Claim(ctx context.Context, claims []Claim) ([]Holder, error)
	// Release frees the key if the owner has it. It is no error if not.
	Release(ctx context.Context, key, owner string) error
	// Facts says whose store it is. It is constant.
	Facts() ClaimFacts
}

// Claim is a wish to hold a key.
type Claim struct {
	// Key is what to hold.
	Key string
	// Owner is who wants it: a job's id.
	Owner string
	// For is how long, by the store's clock. Required.
	For time.Duration
	// Confirmed says that the owner's job is on record. A claim that is only
	// pending does not make another job a duplicate; it makes its caller wait.
	Confirmed bool
}

// Holder is who holds a key.
type Holder struct {
	// Owner is the id that the claim was made with.
	Owner string
	// Confirmed says whether its job is known to be on record.
	Confirmed bool
}
