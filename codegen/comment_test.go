package codegen

import (
	"testing"

	"google.golang.org/protobuf/compiler/protogen"
)

func TestCommentsKeepWhatPeopleRead(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		" A task.\n":                                    "A task.",
		" One.\n\n\n\n Deprecated: use Two.\n":          "One.\n\nDeprecated: use Two.",
		" One.\n\t \n \n Two.\n":                        "One.\n\nTwo.",
		"nolint:all\n text\n":                           "text",
		" nolint\n //nolint:errcheck\n text\n":          "text",
		"lint:ignore SA1019 x\n//lint:file-ignore x\n":  "",
		" #nosec G404\nrevive:disable\n text\n":         "text",
		" buf:lint:ignore X\n +build linux\n text\n":    "text",
		"/path is text, and /nothing else\n":            "/path is text, and /nothing else",
		"\u00a0 +build x\n\u2028nolint\n text\n":        "text",
		" (-- api-linter: x --)text\n (-- more\n --)\n": "text",
		" caf\xe9\r\n":                                  "caf?",
		" a\x00b\u202ec\u2066d\u2069\n":                 "abcd",
		"\ufeff bom\n":                                  "bom",
		"\n\n \n":                                       "",
	} {
		if got := commentText(protogen.CommentSet{Leading: protogen.Comments(raw)}); got != want {
			t.Errorf("commentText(%q)\n got %q\nwant %q", raw, got, want)
		}
	}
}
