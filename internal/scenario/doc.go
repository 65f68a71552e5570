// Package scenario has the tests of Backstage as a whole: real worker processes
// on a real store, killed, stopped and terminated, judged by what their handlers
// did. What they did stands in a file of lines, the ledger, that no store knows
// of.
//
// BACKSTAGE_SOAK=1 runs each scenario in its long form.
package scenario
