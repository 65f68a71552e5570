package backstage_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	backstage "github.com/backstage-go/backstage/runtime"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

func key(t *testing.T, parts ...backstage.KeyPart) string {
	t.Helper()
	k, err := backstage.JoinKey(parts...)
	if err != nil {
		t.Fatalf("JoinKey: %v", err)
	}
	return k
}

func pair(a, b string) []backstage.KeyPart {
	return []backstage.KeyPart{backstage.KeyField("a", a, true), backstage.KeyText("/"), backstage.KeyField("b", b, true)}
}

// TestKeyPartsNeverRunIntoEachOther: different values are different keys.
func TestKeyPartsNeverRunIntoEachOther(t *testing.T) {
	t.Parallel()
	values := []string{"", "a", "b", "/", "a/b", "b/c", "%", "%2F", ":", "{", "}", "#", "a%2Fb", "ä", "\x00", "a b"}
	seen := make(map[string][2]string)
	for _, a := range values {
		for _, b := range values {
			k := key(t, pair(a, b)...)
			if other, taken := seen[k]; taken {
				t.Errorf("(%q, %q) and (%q, %q) have one key %q", a, b, other[0], other[1], k)
			}
			seen[k] = [2]string{a, b}
		}
	}
	if k := key(t, pair("a/b", "c")...); k != "a%2Fb/c" {
		t.Errorf("key of a/b and c = %q, want a%%2Fb/c", k)
	}
}

func TestKeyFieldTexts(t *testing.T) {
	t.Parallel()
	for want, part := range map[string]backstage.KeyPart{
		"true":                 backstage.KeyField("f", true, true),
		"false":                backstage.KeyField("f", false, true),
		"-2147483648":          backstage.KeyField("f", int32(math.MinInt32), true),
		"-9223372036854775808": backstage.KeyField("f", int64(math.MinInt64), true),
		"4294967295":           backstage.KeyField("f", uint32(math.MaxUint32), true),
		"18446744073709551615": backstage.KeyField("f", uint64(math.MaxUint64), true),
		"0":                    backstage.KeyField("f", int32(0), true),
		"order/{x}":            backstage.KeyText("order/{x}"),
	} {
		if got := key(t, part); got != want {
			t.Errorf("key %q, want %q", got, want)
		}
	}
	if got := key(t); got != "" {
		t.Errorf("key of nothing: %q", got)
	}
}

// TestLongKeysEndInAHash of the whole, within the bound, and remain text.
func TestLongKeysEndInAHash(t *testing.T) {
	t.Parallel()
	of := func(s string) string { return key(t, backstage.KeyField("f", s, true)) }
	if k := of(strings.Repeat("x", 200)); len(k) != 200 || strings.Contains(k, "#") {
		t.Errorf("a key of 200 bytes is changed: %q", k)
	}
	seen := make(map[string]bool)
	for _, s := range []string{strings.Repeat("x", 201), strings.Repeat("x", 202), strings.Repeat("x", 300) + "a", strings.Repeat("x", 300) + "b", strings.Repeat("ä", 150), "x" + strings.Repeat("ä", 150)} {
		k := of(s)
		if len(k) > 200 || !utf8.ValidString(k) || !strings.Contains(k, "#") || seen[k] {
			t.Errorf("key of %.10q… (%d bytes): %q; want at most 200 bytes of text, a hash, its own", s, len(s), k)
		}
		seen[k] = true
	}
	if seen[of(of(strings.Repeat("x", 201)))] {
		t.Error("a short value that looks like a hashed key has its key")
	}
}

func TestEmptyKeyFieldIsAnError(t *testing.T) {
	t.Parallel()
	_, err := backstage.JoinKey(backstage.KeyText("order/"), backstage.KeyField("customer.id", "", false))
	var empty *backstage.EmptyKeyError
	if !errors.As(err, &empty) || empty.Field != "customer.id" {
		t.Errorf("error %v, want an *EmptyKeyError that names the path", err)
	}
	for _, value := range []string{"\xff", "\xff/"} {
		if k, err := backstage.JoinKey(backstage.KeyField("f", value, true)); err == nil {
			t.Errorf("%q, which is no text, makes key %q", value, k)
		}
	}
}

func TestIsSet(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		in   *descriptorpb.FieldOptions
		want bool
	}{
		{nil, false},
		{&descriptorpb.FieldOptions{}, false},
		{&descriptorpb.FieldOptions{Packed: proto.Bool(false)}, true},
		{&descriptorpb.FieldOptions{Packed: proto.Bool(true)}, true},
	} {
		if got := backstage.IsSet(row.in, "packed"); got != row.want {
			t.Errorf("IsSet(%v) = %t, want %t", row.in, got, row.want)
		}
	}
}

// TestDifferentFieldsMakeDifferentKeys whatever stands between them.
func TestDifferentFieldsMakeDifferentKeys(t *testing.T) {
	t.Parallel()
	values := []string{"a", "b", "a-b", "b-a", "-", "a/b", "%2D", "%", "a%2Db", "ä", "ä-", "#", "a:b", "a b", ",", "a,b", "x", "xa", "and", "aand"}
	for _, separator := range []string{"/", "-", ":", "--", " ", "x-", "-x", "ä", "|", "", "x", "and"} {
		made := make(map[string][2]string)
		for _, first := range values {
			for _, second := range values {
				key, err := backstage.JoinKey(backstage.KeyField("first", first, true), backstage.KeyText(separator), backstage.KeyField("second", second, true))
				if err != nil {
					t.Fatal(err)
				}
				if other, taken := made[key]; taken {
					t.Errorf("separator %q: %q of %q is also the key of %q", separator, key, [2]string{first, second}, other)
				}
				made[key] = [2]string{first, second}
			}
		}
	}
}
