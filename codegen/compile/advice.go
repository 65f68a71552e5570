package compile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/backstage-go/backstage/codegen"
	backstagev1 "github.com/backstage-go/backstage/schema/backstage/v1"
)

// An adviser adds to what the compiler says what to do about it. The compiler
// knows protobuf; the adviser knows Backstage's options, and which file of the
// module declares what is missing.
type adviser struct {
	sources sources
	// advised are the imports that a file was told to add, to say it once.
	advised map[[2]string]bool
	rules   []adviceRule
}

// An adviceRule is what to say about messages of one form.
type adviceRule struct {
	pattern *regexp.Regexp
	advise  func(d *codegen.Diagnostic, match []string)
}

// advise adds hints to the errors of the compiler. It sorts them first, so that
// what is said once is said at the first place.
func advise(ds codegen.Diagnostics, s sources) codegen.Diagnostics {
	a := &adviser{sources: s, advised: map[[2]string]bool{}}
	a.rules = []adviceRule{
		{regexp.MustCompile(`^(service|method) .*unknown extension (backstage\.\S+)`), a.unknownOption},
		{regexp.MustCompile(`option \(backstage\.v1\.(defaults|task)\): field (\S+) not found`), a.unknownField},
		{regexp.MustCompile(`option \(backstage\.v1\.(?:defaults|task)\): expecting (string|int32), got (integer|double|identifier|string)`), a.quotes},
		{regexp.MustCompile(`^invalid syntax in (?:integer|float) value: (\S+)`), a.bareDuration},
		{regexp.MustCompile(`unknown (?:response |request )?type (\S+)`), a.unknownType},
	}
	ds.Sort()
	for i := range ds {
		a.one(&ds[i])
	}
	return withoutEchoes(ds)
}

func (a *adviser) one(d *codegen.Diagnostic) {
	for _, r := range a.rules {
		if m := r.pattern.FindStringSubmatch(d.Message); m != nil {
			r.advise(d, m)
			return
		}
	}
}

// withoutEchoes drops the parser's second word on what the first explains.
func withoutEchoes(ds codegen.Diagnostics) codegen.Diagnostics {
	return slices.DeleteFunc(ds, func(d codegen.Diagnostic) bool {
		return d.Message == "syntax error: unexpected error" &&
			slices.ContainsFunc(ds, func(other codegen.Diagnostic) bool {
				return other.Pos == d.Pos && other.Message != d.Message
			})
	})
}

// unknownOption is about a misspelt option, or one whose file is not imported.
func (a *adviser) unknownOption(d *codegen.Diagnostic, m []string) {
	if strings.Contains(d.Message, "leading dot") {
		return // the compiler says what to write
	}
	name := map[string]string{"service": "backstage.v1.defaults", "method": "backstage.v1.task"}[m[1]]
	if m[2] != name {
		d.Hint = fmt.Sprintf("did you mean (%s)?", name)
	}
	if !a.imports(d.Pos.File, codegen.OptionsPath) && m[2] == name {
		a.addImport(d, "the schema does not import Backstage's options", codegen.OptionsPath)
	}
}

// unknownField is about an option that there is not.
func (a *adviser) unknownField(d *codegen.Diagnostic, m []string) {
	have, other := optionNames((*backstagev1.TaskOptions)(nil)), optionNames((*backstagev1.ServiceOptions)(nil))
	otherName := "(backstage.v1.defaults) of a service"
	if m[1] == "defaults" {
		have, other, otherName = other, have, "(backstage.v1.task) of an rpc"
	}
	switch near := codegen.Nearest(m[2], have); {
	case slices.Contains(other, m[2]):
		d.Hint = fmt.Sprintf("%s belongs into %s", m[2], otherName)
	case near != "":
		d.Hint = fmt.Sprintf("did you mean %s?", near)
	}
	d.Message += fmt.Sprintf("; there are %s", strings.Join(have, ", "))
}

func optionNames(m protoreflect.ProtoMessage) []string {
	fields := m.ProtoReflect().Descriptor().Fields()
	out := make([]string, fields.Len())
	for i := range out {
		out[i] = string(fields.Get(i).Name())
	}
	slices.Sort(out)
	return out
}

// quotes is about a value of another type than the option's: a number or a bare
// word where a string belongs, or the other way round.
func (a *adviser) quotes(d *codegen.Diagnostic, m []string) {
	before, value := a.around(d.Pos)
	field := regexp.MustCompile(`([a-z_]+)\s*[:=]\s*\[?\s*$`).FindStringSubmatch(before)
	if field == nil || value == "" {
		return
	}
	number := m[2] == "integer" || m[2] == "double"
	switch {
	case m[1] == "int32":
		d.Hint = fmt.Sprintf("write a whole number, without quotes: %s: 5", field[1])
	case number && slices.Contains([]string{"timeout", "backoff", "delay", "expires", "max_age", "dedupe_for"}, field[1]):
		d.Hint = fmt.Sprintf("write it with its unit, in quotes: %s: %q", field[1], value+"s")
	default:
		d.Hint = fmt.Sprintf("write it in quotes: %s: %q", field[1], value)
	}
}

// bareDuration is about 30s without quotes, which is no word of protobuf.
func (a *adviser) bareDuration(d *codegen.Diagnostic, m []string) {
	if codegen.IsDuration(m[1]) {
		d.Hint = fmt.Sprintf("a duration stands in quotes: %q", m[1])
	}
}

// around returns the source before a place, and what is there.
func (a *adviser) around(pos codegen.Position) (before, at string) {
	s := a.sources[pos.File]
	if s == nil {
		return "", ""
	}
	lines := strings.Split(strings.TrimPrefix(s.text, "\ufeff"), "\n")
	if pos.Line < 1 || pos.Line > len(lines) {
		return "", ""
	}
	before, at = pos.Cut(lines[pos.Line-1])
	return strings.Join(lines[:pos.Line-1], "\n") + "\n" + before, at
}
