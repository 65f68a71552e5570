package tracker

import "testing"

func TestASettlementIsFinalWhenItsCommitIsAccepted(t *testing.T) {
	t.Parallel()
	tr := New(Config{}, 100)
	for o := int64(100); o < 103; o++ {
		if got := tr.Add(o, ""); got != Kept {
			t.Fatalf("Add(%d) = %v, want Kept", o, got)
		}
	}
	if run, ok := tr.Start(0); ok {
		t.Fatalf("record %d started below no mark on record", run.Offset)
	}
	c, ok := tr.Commit(0, 10)
	if !ok || c.Offset != 100 {
		t.Fatalf("first commit is %+v, %v; want offset 100", c, ok)
	}
	tr.Accepted(c.Number)
	tr.Start(0)
	run, ok := tr.Start(0)
	if !ok || run.Offset != 101 {
		t.Fatalf("second start is %+v, %v; want offset 101", run, ok)
	}
	n, err := tr.Settle(run)
	if err != nil {
		t.Fatal(err)
	}
	c, _ = tr.Commit(0, 10)
	if c.Number != n || tr.Final(n) {
		t.Fatalf("commit %d, settled by %d, final %v", c.Number, n, tr.Final(n))
	}
	tr.Accepted(n)
	if !tr.Final(n) {
		t.Fatal("not final after its commit was accepted")
	}
	next, err := Load(Config{}, c.Offset, c.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	if a, b, c := next.Add(100, ""), next.Add(101, ""), next.Add(102, ""); a != Kept || b != Dropped || c != Kept {
		t.Fatalf("after a crash: %v %v %v", a, b, c)
	}
}
