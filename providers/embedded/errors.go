package embedded

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
)

// errStopped ends the writer's waiting when the provider is closed.
var errStopped = errors.New("writer is stopped")

// Error is what kept the file from being read or written. Nothing that it is
// returned for was acknowledged.
type Error struct {
	// Path is the file.
	Path string
	// Code is SQLite's extended result code.
	Code int
	// Problem says what is wrong, in a sentence without a full stop.
	Problem string
	// Remedy says what to do.
	Remedy string
	// Err is the driver's error.
	Err error

	blame    blame
	final    bool
	doubtful bool
}

// Error returns all of it in one line.
func (e *Error) Error() string {
	said := ""
	if e.Err != nil {
		said = " (" + e.Err.Error() + ")"
	}
	return fmt.Sprintf("embedded file %s: %s%s; %s", e.Path, e.Problem, said, e.Remedy)
}

// Unwrap returns the driver's error.
func (e *Error) Unwrap() error { return e.Err }

// blame says whose fault an error is: then a batch is tried again call by call,
// or not.
type blame int

const (
	ofFile blame = iota // nobody can write now
	ofCall              // one call's; the others can go on
)

// trouble is what is known of one of SQLite's result codes.
type trouble struct {
	code            int
	problem, remedy string
	blame           blame
	final           bool // waiting does not help
	doubtful        bool // if it happens while committing, the transaction may be in the file
}

// SQLite's result codes, as far as they differ for us. A code of 256 and more is
// an extended one and wins over its lowest byte.
const (
	codePerm     = 3
	codeBusy     = 5
	codeLocked   = 6
	codeNoMem    = 7
	codeReadOnly = 8
	codeIO       = 10
	codeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	codeProtocol = 15
	codeTooBig   = 18
	codeNoLFS    = 22
	codeAuth     = 23
	codeNotADB   = 26

	codeIOShmOpen   = 10 | 18<<8
	codeIOShmSize   = 10 | 19<<8
	codeIOShmLock   = 10 | 20<<8
	codeIOShmMap    = 10 | 21<<8
	codeIOLock      = 10 | 15<<8
	codeIOUnlock    = 10 | 8<<8
	codeReadOnlyDir = 8 | 6<<8
	codeDBMoved     = 8 | 4<<8
)

// troubles is the table of what SQLite can say. What is not in it concerns the
// one call that met it.
func troubles() []trouble {
	return []trouble{
		{code: codePerm, problem: "the operating system denies access", remedy: "check owner and mode of the file and its folder", final: true},
		{code: codeBusy, problem: "another connection holds the write lock", remedy: "end the program that keeps a transaction open on it"},
		{code: codeLocked, problem: "another connection holds a lock in it", remedy: "end the program that keeps a transaction open on it"},
		{code: codeNoMem, problem: "memory ran out", remedy: "give the process more memory"},
		{code: codeReadOnly, problem: "it cannot be written", remedy: "check its mode and that the file system is mounted for writing"},
		{code: codeReadOnlyDir, problem: "its folder cannot be written, which the write-ahead log needs", remedy: "check owner and mode of the folder"},
		{code: codeDBMoved, problem: "it was moved or deleted while it was open", remedy: "stop all processes, put it back together with its -wal file, and start again", final: true},
		{code: codeIO, problem: "the disk failed to read or write", remedy: "look for disk errors in the system's log", doubtful: true},
		{code: codeIOLock, problem: "its file system gives no locks", remedy: "use a local disk, not a network share", final: true},
		{code: codeIOUnlock, problem: "its file system gives no locks", remedy: "use a local disk, not a network share", final: true, doubtful: true},
		{code: codeIOShmOpen, problem: "its file system cannot share memory between processes", remedy: "use a local disk, not a network share", final: true},
		{code: codeIOShmSize, problem: "its file system cannot share memory between processes, or is full", remedy: "free some space, or use a local disk"},
		{code: codeIOShmLock, problem: "its file system gives no locks", remedy: "use a local disk, not a network share", final: true},
		{code: codeIOShmMap, problem: "its file system cannot share memory between processes", remedy: "use a local disk, not a network share", final: true},
		{code: codeCorrupt, problem: "it is damaged", remedy: "stop all processes, keep a copy, and restore a backup or recover it with sqlite3's .recover", final: true},
		{code: codeFull, problem: "the disk is full", remedy: "free some space; settling and discarding jobs frees room in the file"},
		{code: codeCantOpen, problem: "it cannot be opened", remedy: "check that its folder exists and can be written"},
		{code: codeProtocol, problem: "the locks of the file system do not work", remedy: "use a local disk, not a network share"},
		{code: codeTooBig, problem: "a job is larger than the file can store", remedy: "keep payloads below a gigabyte", blame: ofCall},
		{code: codeNoLFS, problem: "its file system has no large files", remedy: "use another file system", final: true},
		{code: codeAuth, problem: "access was denied", remedy: "check who else configures the driver", final: true},
		{code: codeNotADB, problem: "it is not a SQLite file", remedy: "check the path; if it once was one, restore a backup", final: true},
	}
}

// troubleOf finds what is known of a code, the extended one first.
func troubleOf(code int) trouble {
	plain := trouble{code: code, problem: "the statement failed", remedy: "report it with this text", blame: ofCall}
	for _, t := range troubles() {
		if t.code == code {
			return t
		}
		if t.code == code&0xff {
			plain = t
		}
	}
	return plain
}

// fault makes a driver's error one of ours.
func fault(path string, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	var driver *sqlite.Error
	if !errors.As(err, &driver) {
		return err
	}
	t := troubleOf(driver.Code())
	return &Error{
		Path: path, Code: driver.Code(), Problem: t.problem, Remedy: t.remedy, Err: err,
		blame: t.blame, final: t.final,
	}
}

// commitFault is fault for an error of the commit itself, after some of which nobody
// knows whether the transaction is in the file.
func commitFault(path string, err error) error {
	var known *Error
	if err = fault(path, err); !errors.As(err, &known) {
		return err
	}
	committing := *known
	committing.doubtful = troubleOf(known.Code).doubtful
	return &committing
}

// primary returns SQLite's primary result code of an error, or 0.
func primary(err error) int {
	var known *Error
	if errors.As(err, &known) {
		return known.Code & 0xff
	}
	var driver *sqlite.Error
	if errors.As(err, &driver) {
		return driver.Code() & 0xff
	}
	return 0
}

// doubtful reports whether what failed may be in the file all the same.
func doubtful(err error) bool {
	var known *Error
	return errors.As(err, &known) && known.doubtful
}

// final reports whether waiting cannot help.
func final(err error) bool {
	var known *Error
	return errors.As(err, &known) && known.final
}

// concernsFile reports whether an error would meet every other call too.
func concernsFile(err error) bool {
	var known *Error
	return errors.As(err, &known) && known.blame == ofFile
}
