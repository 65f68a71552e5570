package kafka

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/backstage-go/backstage/runtime/provider"
)

// letterPlace is where a letter is.
type letterPlace struct {
	at      int64 // when it died, in nanoseconds since 1970
	address string
	queue   string
	offset  int64
}

// comparePlaces puts the newest first.
func comparePlaces(a, b letterPlace) int { return compareLetters(a.at, a.address, b.at, b.address) }

func compareLetters(at int64, address string, otherAt int64, otherAddress string) int {
	if at != otherAt {
		return cmp.Compare(otherAt, at)
	}
	return strings.Compare(address, otherAddress)
}

// page is the name of the page that begins behind a letter.
func (s letterPlace) page() string { return strconv.FormatInt(s.at, 10) + "/" + s.address }

// mark is where a page ended.
type mark struct {
	at      int64
	address string
	set     bool
}

// parsePage reads where a page ended.
func parsePage(page string) (mark, error) {
	if page == "" {
		return mark{}, nil
	}
	at, address, ok := strings.Cut(page, "/")
	n, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || address == "" {
		return mark{}, fmt.Errorf("there is no page %q of dead letters", page)
	}
	return mark{n, address, true}, nil
}

// passes reports whether a letter comes after the mark.
func (m mark) passes(l *provider.DeadLetter) bool {
	return !m.set || compareLetters(l.At.UnixNano(), l.Address, m.at, m.address) > 0
}
