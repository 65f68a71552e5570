package codegen

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTemplatesAreSplitIntoLiteralsAndPaths(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]segment{
		"":                nil,
		"plain":           {{literal: "plain"}},
		"order/{id}":      {{literal: "order/"}, {path: []string{"id"}, offset: 6}},
		"{a.b_c.D2}":      {{path: []string{"a", "b_c", "D2"}}},
		"{a?}":            {{path: []string{"a"}, optional: true}},
		"{{}}":            {{literal: "{}"}},
		"{{{a}}}":         {{literal: "{"}, {path: []string{"a"}, offset: 2}, {literal: "}", offset: 5}},
		"{a}{b}":          {{path: []string{"a"}}, {path: []string{"b"}, offset: 3}},
		"ä{a}":            {{literal: "ä"}, {path: []string{"a"}, offset: 2}},
		"question? mark?": {{literal: "question? mark?"}},
	} {
		got, err := parseTemplate(text)
		if err != nil {
			t.Errorf("parseTemplate(%q) = %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(segment{})); diff != "" {
			t.Errorf("parseTemplate(%q) (-want +got):\n%s", text, diff)
		}
	}
}

func TestTemplatesThatDoNotParseSayWhere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{":        "offset 0: a { without its }; write {{ for a brace",
		"a}":       "offset 1: a } without its {; write }} for a brace",
		"x{}":      "offset 1: an empty {}; name a field",
		"{?}":      "offset 0: an empty {}; name a field",
		"{a b}":    `offset 0: "a b" is no field path`,
		"{.a}":     `offset 0: ".a" is no field path`,
		"{a.}":     `offset 0: "a." is no field path`,
		"{a??}":    `offset 0: "a?" is no field path`,
		"{ä}":      `offset 0: "ä" is no field path`,
		"{a{b}}":   `offset 0: "a{b" is no field path`,
		"ok\x00":   "offset 2: a control character",
		"{{{a}}":   "offset 5: a } without its {; write }} for a brace",
		"a\u0085b": "offset 1: a control character",
	} {
		_, err := parseTemplate(text)
		if err == nil || err.Error() != want {
			t.Errorf("parseTemplate(%q) = %v, want %q", text, err, want)
		}
	}
}

func FuzzTemplatesEitherParseOrSayWhere(f *testing.F) {
	for _, seed := range []string{"order/{id}", "{{x}}", "{a.b?}", "{", "}", "\xff{a}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		segments, err := parseTemplate(text)
		if err != nil {
			se, ok := err.(*syntaxError)
			if !ok || se.offset < 0 || se.offset >= len(text) {
				t.Errorf("parseTemplate(%q) fails outside of the text: %v", text, err)
			}
			return
		}
		for _, s := range segments {
			if (s.path == nil) == (s.literal == "") {
				t.Errorf("parseTemplate(%q) has a segment that is neither literal nor path: %+v", text, s)
			}
		}
	})
}
