package embedded

import "os"

// inPlace returns an error if the file that is open is no longer what its path
// names: it was removed, or another was put in its place. What is written to it
// then is seen by nobody who comes later, so nothing is.
func (s *store) inPlace() error {
	now, err := os.Stat(s.path)
	if err == nil && os.SameFile(now, s.opened) {
		return nil
	}
	return &Error{
		Path:    s.path,
		Problem: "it was removed or replaced while it is open",
		Remedy:  "stop every process that has it open before a file is moved or restored, and start them again now",
		Err:     err,
		final:   true,
	}
}
