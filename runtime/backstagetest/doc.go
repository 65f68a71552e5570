// Package backstagetest is for the tests of programs that use Backstage. It needs
// no server.
//
// To test code that enqueues, give it a [Recorder] in place of a client, and
// compare what it recorded by [Diff]. To test one handler, call it: its next
// argument may be new(ordertasks.ChargeCardNext), and backstage.Taken shows what
// it chose. To test handlers together, with chains, retries and delays, register
// them with [New] and let it [Harness.Drain]. In a bubble of testing/synctest an
// hour of backoff takes no time:
//
//	synctest.Test(t, func(t *testing.T) {
//		h := backstagetest.New(t, func(w *backstage.Worker) { ordertasks.Register(w, &shop{}) })
//		orders, err := ordertasks.NewClient(h.Client)
//		…
//		h.Drain()
//		h.Advance(time.Hour)
//	})
//
// Steps that another service runs stay in its queue: [Harness.Sent] returns them, to
// be compared by Diff.
package backstagetest
