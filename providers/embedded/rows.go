package embedded

import "strings"

// inserting is an insert statement for several numbers of rows. A statement costs
// more than a row, and each number of rows is a statement of its own, so there are
// three sizes.
type inserting struct {
	size            int // values in a row
	many, some, one string
}

const (
	manyRows = 64
	someRows = 8
)

func newInserting(into string, size int) inserting {
	row := "(?" + strings.Repeat(", ?", size-1) + ")"
	of := func(rows int) string {
		return "insert into " + into + " values " + row + strings.Repeat(", "+row, rows-1)
	}
	return inserting{size: size, many: of(manyRows), some: of(someRows), one: of(1)}
}

// insertings are the statements that insert many rows.
type insertings struct {
	job, ready, chain, held inserting
}

func newInsertings() insertings {
	return insertings{
		job:   newInserting("job (n, q, key, body)", 4),
		ready: newInserting("ready (q, pos, n)", 3),
		chain: newInserting("chain (q, key, pos, n)", 4),
		held:  newInserting("held (n, scope, q, due, idh, pos, token)", 7),
	}
}

// insertRows inserts count rows, whose values each call of row appends.
func (t *transaction) insertRows(into *inserting, count int, row func(args []any, i int) []any) {
	args := make([]any, 0, min(count, manyRows)*into.size)
	for i := 0; i < count; {
		statement, rows := into.one, 1
		switch {
		case count-i >= manyRows:
			statement, rows = into.many, manyRows
		case count-i >= someRows:
			statement, rows = into.some, someRows
		}
		args = args[:0]
		for range rows {
			args = row(args, i)
			i++
		}
		t.exec(statement, args...)
	}
}
