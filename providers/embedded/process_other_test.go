//go:build !unix

package embedded

const childVariable = "BACKSTAGE_EMBEDDED_CHILD"

func child(string) {}
