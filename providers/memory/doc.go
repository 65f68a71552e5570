// Package memory is the provider for tests and examples: the whole contract of
// package provider in plain Go, gone with its process. It needs no server and no
// file, and starts no goroutine; it knows the time from time.Now alone, so that it
// works in a bubble of testing/synctest.
//
// # What it promises
//
// Everything that the contract says, with nothing weak but durability: settlements
// are on record when they return, late ones are refused, the next jobs of a chain
// and the end of the job that made them are one step, crashes are counted exactly,
// jobs with one ordering key run one at a time and in order. Delays and claims are
// its own, in the same step as Publish and Ack, and can be lent.
//
// A job that is held becomes ready at its time by itself, whether or not a worker
// promotes: whoever looks next finds it in its queue. What is lent waits for a
// promoter of its scope, and so does what is held here while a call of Promote
// with a publish of its own is running.
//
// A delivery whose lease has run out is ours until somebody takes it over; until
// then its heartbeat and its settlement are still taken.
//
// # What it does not
//
// Nothing survives the process. There is no persistence, no network and no limit
// on memory but the bounds in [Config].
//
// # Two processes
//
// A [Store] is the storage, and every [Open] of it acts as a process of its own.
// [Store.Drop] ends one as if it had been killed.
package memory
