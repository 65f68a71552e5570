//go:build !unix

package kafka

// child is asked of nobody here: a process cannot kill itself at a point.
func child(string) {}
