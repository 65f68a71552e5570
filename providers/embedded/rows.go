package embedded

import (
	"math/bits"
	"strings"
)

// inserting is an insert statement for several numbers of rows. A statement costs
// more than a row, and each number of rows is a statement of its own, so there is
// one for each power of two.
type inserting struct {
	size int      // values in a row
	of   []string // of 1, 2, 4 … rows
}

// mostRows is how many rows a statement inserts at most.
const mostRows = 64

func newInserting(into string, size int) inserting {
	row := "(?" + strings.Repeat(", ?", size-1) + ")"
	s := inserting{size: size}
	for rows := 1; rows <= mostRows; rows *= 2 {
		s.of = append(s.of, "insert into "+into+" values "+row+strings.Repeat(", "+row, rows-1))
	}
	return s
}

// insertings are the statements that insert many rows.
type insertings struct {
	job, ready, line, held inserting
}

func newInsertings() insertings {
	return insertings{
		job:   newInserting("job (n, q, key, body)", 4),
		ready: newInserting("ready (q, pos, n)", 3),
		line:  newInserting("line (q, key, pos, n)", 4),
		held:  newInserting("held (n, scope, q, due, idh, pos, key, behind, token)", 9),
	}
}

// insertRows inserts count rows, whose values each call of row appends.
func (t *transaction) insertRows(into *inserting, count int, row func(args []any, i int) []any) {
	args := t.w.args[:0]
	for i := 0; i < count; {
		power := bits.Len(uint(min(count-i, mostRows))) - 1
		args = args[:0]
		for range 1 << power {
			args = row(args, i)
			i++
		}
		t.exec(into.of[power], args...)
	}
	clear(args[:cap(args)])
	t.w.args = args
}
