package embedded

// A job with an ordering key stands in its key's line until it is settled, and
// only the first of a line is ready, running or held. So starting jobs never has to
// look for others of a key, however many wait.

const (
	sqlLineHas   = "select 1 from line where q = ? and key = ? limit 1"
	sqlLeave     = "delete from line where q = ? and key = ? and pos = ?"
	sqlReadyHead = "insert into ready (q, pos, n) select q, pos, n from line where q = ? and key = ? order by pos limit 1"
	sqlReady     = "insert into ready (q, pos, n) values (?, ?, ?)"
)

// line names the jobs of a queue that share an ordering key.
type line struct{ q, key int64 }

// join puts jobs at the end of their keys. Their number is their place.
func (t *transaction) join(list []*entry) {
	known := make(map[line]bool, len(list))
	var heads []*entry
	for _, e := range list {
		at := line{e.q, e.key}
		if known[at] {
			continue
		}
		known[at] = true
		if !t.row(sqlLineHas, []any{e.q, e.key}) {
			heads = append(heads, e)
		}
	}
	t.insertRows(&t.w.insert.line, len(list), func(args []any, i int) []any {
		e := list[i]
		return append(args, e.q, e.key, e.n, e.n)
	})
	t.insertRows(&t.w.insert.ready, len(heads), func(args []any, i int) []any {
		e := heads[i]
		return append(args, e.q, e.n, e.n)
	})
	t.readyFor(heads)
}

// leave takes a job out of its key, and lets the next one start. A job without a
// key is in no line.
func (t *transaction) leave(q, key, pos int64) {
	if key == 0 {
		return
	}
	t.exec(sqlLeave, q, key, pos)
	if t.exec(sqlReadyHead, q, key) > 0 {
		t.nowReady(q)
	}
}

// makeReady lets a job start, at its place.
func (t *transaction) makeReady(q, pos, n int64) {
	t.exec(sqlReady, q, pos, n)
	t.nowReady(q)
}

func (t *transaction) nowReady(q int64) {
	t.lanes[q] = true
	t.stir = true
}
