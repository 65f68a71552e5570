// Package provider is the contract between the runtime and a broker. The runtime
// decides what must happen to a delivery (ack, retry, dead-letter); a provider
// knows how its broker does it. Code that enqueues and handles jobs does not need
// this package. Operators' tools do, for dead letters and numbers ([DeadLetters],
// [Stats]), and so do authors of providers, whom package providertest holds to it.
//
// A [Provider] is a struct of small interfaces. A nil one means that the broker
// cannot: the runtime then refuses what needs it, by name, when a client or a
// worker is made. What a broker can do only weakly is a fact, on the capability
// that it describes, and the suite measures it.
//
// # What every provider keeps to
//
// It never loses what it said was stored. It never looks inside a payload, never
// logs (it reports to [Events]), never retries user work, and starts no goroutine
// that outlives Close. Settlements and publishes from many goroutines are
// coalesced (take what waits, flush, take again; no linger), and each call still
// returns only when its own is on record. The store's clock, not the worker's,
// decides due times and leases.
//
// Nobody fences by owner alone: a settlement or a heartbeat of an older run never
// touches a newer run of the same job, in the same process or elsewhere, and a
// heartbeat never takes a job back.
//
// A job with an ordering key keeps its place in its key. Any other re-enters its
// queue at the end when it is due; a released one may go first.
//
// The broker stores the bytes of [Marshal]. Every rewrite (retry, hold,
// dead-letter, replay) goes through [Job.After], [Job.Dead] or [Job.Replay] and
// folds in what the broker counted, so that counters have one owner and unknown
// fields of a newer version survive. Bytes that are no record are dead-lettered
// by the provider itself, as bytes, with an event of kind [ForeignRecord].
//
// Methods may be called from many goroutines at once unless they say otherwise.
package provider
