//go:build !unix

package redisstreams

// childVariable is set for nobody here: a process cannot kill itself at a point.
const childVariable = "BACKSTAGE_REDISSTREAMS_CHILD"

func child(string) {}
