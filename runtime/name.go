package backstage

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the most bytes of a name and of a key. A longer key keeps its
// beginning, for people, and ends in a hash of the whole.
const maxName = 200

// checkName refuses names that a schema refuses too: those of queues become names
// of streams, topics and files. what is who gives the name, such as "OnQueue".
func checkName(what, s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Errorf("%s(%.40q): it has a space or a character that is not plain ASCII", what, s)
	}
	return checkText(what, s)
}

// checkID refuses ids that a person could not copy out of a log.
func checkID(what, s string) error {
	if err := checkText(what, s); err != nil {
		return err
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return fmt.Errorf("%s(%.40q): it has a space or a character that cannot be printed", what, s)
	}
	return nil
}

// checkText refuses what is empty, too long or not text.
func checkText(what, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("%s: must not be empty", what)
	case len(s) > maxName:
		return fmt.Errorf("%s(%.20q…): longer than %d bytes", what, s, maxName)
	case !utf8.ValidString(s):
		return fmt.Errorf("%s(%q): not valid UTF-8", what, s)
	}
	return nil
}
