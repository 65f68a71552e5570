package embedded

// Held jobs of a queue and an ordering key are promoted one at a time, in the order in
// which they are due. All but the first of them stand behind it, and are not looked at
// while they do: so what is due is found without a look at others of a key, however
// many are due. The first is the one that a promoter has begun with, otherwise the one
// that is due first.

const (
	sqlFirst   = "select n, token from held where scope = ? and q = ? and key = ? and key <> 0 and behind = 0"
	sqlSoonest = "select n, due from held where scope = ? and q = ? and key = ? and key <> 0 order by due, n limit 1"
	sqlBehind  = "update held set behind = ? where n = ?"
)

// waitsIn returns the line in which the job waits to be promoted; without a key if in
// none: it has none, or it keeps a place among those that are not held.
func (h heldRow) waitsIn() line {
	if h.pos != 0 {
		return line{}
	}
	return line{h.q, h.key}
}

// elect puts the right one of a key's held jobs first, after one came, went or changed
// its time.
func (t *transaction) elect(scope int64, of line) {
	if of.key == 0 {
		return
	}
	var first, token, soonest, due int64
	args := []any{scope, of.q, of.key}
	found := t.row(sqlFirst, args, &first, &token)
	if token != 0 || !t.row(sqlSoonest, args, &soonest, &due) || soonest == first {
		return
	}
	if found {
		t.exec(sqlBehind, true, first)
	}
	t.exec(sqlBehind, false, soonest)
	t.heldUntil(scope, due)
}
