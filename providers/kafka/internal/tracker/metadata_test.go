package tracker

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample is a state that has all there is.
func sample() state {
	return state{
		owner: 7, offset: 1000, crashed: 1010, mark: 1300,
		settled: intervals{{1001, 1002, 1000}, {1004, 1200, 1003}, {1250, 1251, 1249}},
		notes: []note{
			{offset: 1000, open: true, crashes: 3},
			{offset: 1003, keyed: true, counts: Counts{Failures: 2, Snoozes: 300, Parks: 4}, due: 1_800_000_000_000},
			{offset: 1201, handovers: 7, crashes: 127},
			{offset: 1260, keyed: true, open: true, due: latestDue, counts: Counts{mostFailures, mostPutOff, mostPutOff}},
			{offset: 1299},
		},
	}
}

// Metadata outlives the program that wrote it: this text is read for ever.
const sampleText = "bkstABwAAAAqiAgMBAQLEATIBAAUDAxoCrAIEgKDxwrE0xgHkfzsb//9//3//f///////fycArRgYZw"

func TestMetadataIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	want := sample()
	text := want.encode()
	got, err := decode(1000, text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(state{}, interval{}, note{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMetadataOfEarlierReleases(t *testing.T) {
	t.Parallel()
	s := sample()
	if got := s.encode(); got != sampleText {
		t.Errorf("this version writes %q, the first one wrote %q", got, sampleText)
	}
}

func TestForeignMetadata(t *testing.T) {
	t.Parallel()
	s := sample()
	text := s.encode()
	for name, metadata := range map[string]string{
		"another program's":       "{\"offset\":1000}",
		"a word":                  "bkst",
		"a word and a version":    "bkstA",
		"base64 without a sum":    "bkstAAAAA",
		"white space":             " " + text,
		"a line end":              text + "\n",
		"padding":                 text + "=",
		"an older version":        reseal(text, '@'),
		"damaged and newer":       "bkstB" + text[5:],
		"trailing bytes":          reframe(1000, func(b []byte) []byte { return append(b, 0) }),
		"a number too long":       reframe(1000, func(b []byte) []byte { return append(b[:4], 0x8a, 0x00) }),
		"two intervals that meet": reframe(1000, func(b []byte) []byte { return append(b[:4], 0, 0, 2, 1, 1, 0, 1) }),
		"an empty interval":       reframe(1000, func(b []byte) []byte { return append(b[:4], 0, 0, 1, 1, 0) }),
		"a note on a settled":     reframe(1000, func(b []byte) []byte { return append(b[:4], 0, 0, 1, 1, 1, 1, 0) }),
		"two notes on one":        reframe(1000, func(b []byte) []byte { return append(b[:4], 0, 0, 0, 1, 0, 0, 0) }),
		"a distance too large":    reframe(1000, func(b []byte) []byte { return append(b[:4], 0xff, 0xff, 0xff, 0xff, 1, 0, 0) }),
	} {
		if _, err := Load(Config{}, 1000, metadata); err != ErrForeign {
			t.Errorf("%s: %v, want ErrForeign", name, err)
		}
	}
	if _, err := Load(Config{}, 1001, text); err != ErrForeign {
		t.Errorf("beside another offset: %v, want ErrForeign", err)
	}
}

func TestMetadataOfANewerVersion(t *testing.T) {
	t.Parallel()
	s := sample()
	newer := reseal(s.encode(), 'B')
	if _, err := Load(Config{}, 1000, newer); err != ErrNewer {
		t.Errorf("Load: %v, want ErrNewer", err)
	}
	if _, err := Read(1000, newer, 0); err != ErrNewer {
		t.Errorf("Read: %v, want ErrNewer", err)
	}
	if _, err := Load(Config{}, 1000, newer[:len(newer)-4]); err != ErrForeign {
		t.Errorf("cut off: %v, want ErrForeign", err)
	}
}

func TestDamagedMetadataIsForeign(t *testing.T) {
	t.Parallel()
	s := sample()
	text := s.encode()
	for i := range text {
		if _, err := decode(1000, text[:i]); err != ErrForeign {
			t.Errorf("cut off at %d: %v, want ErrForeign", i, err)
		}
		for bit := range 8 {
			b := []byte(text)
			b[i] ^= 1 << bit
			if _, err := decode(1000, string(b)); err != ErrForeign {
				t.Errorf("bit %d of byte %d turned: %v, want ErrForeign", bit, i, err)
			}
		}
	}
}

// reseal makes of a text one of another version.
func reseal(text string, version byte) string {
	b, _ := base64.RawStdEncoding.DecodeString(text[len(frame)+1:])
	b = b[:len(b)-sumSpace]
	b = binary.LittleEndian.AppendUint32(b, sum(version, 1000, b))
	return frame + string(version) + base64.RawStdEncoding.EncodeToString(b)
}

// reframe makes a text with a good sum of a state that was changed.
func reframe(offset int64, change func([]byte) []byte) string {
	s := sample()
	b, _ := base64.RawStdEncoding.DecodeString(s.encode()[len(frame)+1:])
	return seal(offset, change(b[:len(b)-sumSpace]))
}

// Bytes with a good sum are read without a panic, and what is accepted is what would be
// written; without one, nothing is accepted.
func FuzzMetadata(f *testing.F) {
	s := sample()
	text := s.encode()
	b, _ := base64.RawStdEncoding.DecodeString(text[len(frame)+1:])
	f.Add(int64(1000), text, b[:len(b)-sumSpace])
	f.Add(int64(0), "", []byte{0, 0, 0, 0, 0, 0, 0})
	f.Add(int64(0), "", []byte("0000\xa9\xa9\x7f\xffX\x00"))
	f.Add(int64(1)<<62, "bkstB", []byte{1, 2, 3, 4, 5, 6, 1, 1, 1, 9, 255})
	f.Fuzz(func(t *testing.T, offset int64, text string, raw []byte) {
		if _, err := decode(offset, text); err == nil && !strings.HasPrefix(text, frame) {
			t.Fatalf("%q was accepted", text)
		}
		metadata := seal(offset, bytes.Clone(raw))
		tr, err := Load(Config{Metadata: 1 << 20}, offset, metadata)
		if err != nil {
			return
		}
		tr.changed = true
		for i := range int64(64) {
			tr.Add(offset+i*i, "")
		}
		c, _ := tr.Commit(latestDue, 8)
		if _, err := Load(Config{Metadata: 1 << 20}, c.Offset, c.Metadata); err != nil {
			t.Fatalf("what %x became does not load: %v", raw, err)
		}
		if _, err := Read(c.Offset, c.Metadata, 0); err != nil {
			t.Fatal(err)
		}
	})
}
