// Package batch replays or discards a fixed set of dead letters, each once, however
// often it is interrupted.
//
// A [Plan] is the set: letters by their addresses, with what tells each from any
// other. It is made once, and what dies later is not in it, nor is a job of it that
// was replayed and died again: that is another letter, at another address. Before a
// letter is touched it is read again, and left alone if it is not the one that was
// planned (an address may mean something else after a store was restored from a
// backup).
//
// A [Journal] keeps the plan and what became of its letters in a file, so that a run
// that was killed goes on where it was. Progress is appended and synced after each
// step, of at most [MaxStep] letters. Those of the step in which a run was killed are
// looked at again: a letter that was replayed is gone from the dead letters, so that
// it is not replayed twice. What a provider does when it is cut off within a letter
// is its own promise: the letter is in one of the two places, or a copy in both,
// which runs the job twice under its one id.
//
// Two runs of one journal at once do no harm: of two replays of one letter one finds
// it gone.
package batch
