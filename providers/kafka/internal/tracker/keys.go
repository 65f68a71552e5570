package tracker

import "slices"

// line are the records with one ordering key: one that may start, runs, or was settled
// and is not on record yet, and those that wait behind it.
type line struct {
	key         string
	first, last *record // of those that wait
}

// lines are those of all keys that unsettled records have.
type lines struct {
	of      map[string]*line
	unheard []unheard
}

// unheard is a line whose foremost record was settled by a commit that is not on record.
type unheard struct {
	line   *line
	commit int64
}

// join puts the record into the line of its key. It reports whether it has to wait
// behind another.
func (ls *lines) join(r *record, key string) bool {
	l := ls.of[key]
	if l == nil {
		r.line = &line{key: key}
		ls.of[key] = r.line
		return false
	}
	r.line = l
	if l.first == nil {
		l.first = r
	} else {
		l.last.behind = r
	}
	l.last = r
	return true
}

// leave says that the foremost record of the line is settled by a commit.
func (ls *lines) leave(l *line, commit int64) {
	ls.unheard = append(ls.unheard, unheard{l, commit})
}

// settle says that the commit is on record. It hands over those that are the foremost
// of their lines now.
func (ls *lines) settle(commit int64, foremost func(*record)) {
	n := 0
	for ; n < len(ls.unheard) && ls.unheard[n].commit <= commit; n++ {
		l := ls.unheard[n].line
		if l.first == nil {
			delete(ls.of, l.key)
			continue
		}
		r := l.first
		l.first, r.behind = r.behind, nil
		foremost(r)
	}
	ls.unheard = slices.Delete(ls.unheard, 0, n)
}
