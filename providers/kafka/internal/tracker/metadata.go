package tracker

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
)

// The errors of metadata that cannot be used.
var (
	// ErrForeign: somebody else wrote it, it belongs to another offset, or it is
	// damaged or cut off.
	ErrForeign = errors.New("commit metadata is not ours or damaged")
	// ErrNewer: a newer version of this package wrote it.
	ErrNewer = errors.New("commit metadata is of a newer version")
	// ErrBound: it was written under a larger bound and leaves no room under this one.
	ErrBound = errors.New("commit metadata leaves no room under its bound")
)

// Metadata is text: four letters that say whose it is, the letter of the version, and in
// base64 the state and a checksum over all of that and the offset. Every version has
// this frame, so that a newer one is told apart from what only begins like ours. It is
// not compressed: what has to fit is the worst that can come, and its size would not be
// known before.
const (
	frame   = "bkst"
	version = 'A'
)

const sumSpace = 4

// rawSpace is how many bytes of state and checksum fit into so many bytes of text.
func rawSpace(text int) int {
	return base64.RawStdEncoding.DecodedLen(text - len(frame) - 1)
}

// seal makes metadata of a state.
func seal(offset int64, state []byte) string {
	state = binary.LittleEndian.AppendUint32(state, sum(version, offset, state))
	text := make([]byte, 0, len(frame)+1+base64.RawStdEncoding.EncodedLen(len(state)))
	text = append(append(text, frame...), version)
	return string(base64.RawStdEncoding.AppendEncode(text, state))
}

// sum is the checksum of a state that belongs to an offset.
func sum(version byte, offset int64, state []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	head := append([]byte(frame), version)
	head = binary.LittleEndian.AppendUint64(head, uint64(offset))
	return crc32.Update(crc32.Checksum(head, table), table, state)
}

// decode reads metadata. What it accepts is what encode would have written.
func decode(offset int64, metadata string) (state, error) {
	rest, ok := strings.CutPrefix(metadata, frame)
	if !ok || rest == "" {
		return state{}, ErrForeign
	}
	of := rest[0]
	b, err := base64.RawStdEncoding.Strict().DecodeString(rest[1:])
	if err != nil || len(b) < sumSpace {
		return state{}, ErrForeign
	}
	b, end := b[:len(b)-sumSpace], b[len(b)-sumSpace:]
	if binary.LittleEndian.Uint32(end) != sum(of, offset, b) || of < version {
		return state{}, ErrForeign
	}
	if of > version {
		return state{}, ErrNewer
	}
	s, ok := decodeState(offset, b)
	if !ok || s.encode() != metadata {
		return state{}, ErrForeign
	}
	return s, nil
}
