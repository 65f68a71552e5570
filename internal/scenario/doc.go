// Package scenario has the tests of Backstage as a whole: real worker processes
// on a real store, killed, stopped and terminated, judged by what their handlers
// did. What they did stands in a file of lines, the ledger, that no store knows
// of.
//
// Each scenario runs on each broker that there is, and is skipped where the
// broker's provider says that it lacks what the scenario is about. A new broker is
// one line more in the table of brokers: an address of a store of its own for each
// test and, if it has a server, how to start one that a test may kill. What only one
// broker can suffer, such as a stream that somebody deletes, has a file of its own.
//
// BACKSTAGE_SOAK=1 runs each scenario in its long form.
package scenario
