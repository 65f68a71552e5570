package command

import (
	"encoding/json"
	"io"
)

// Console is what a command talks to.
type Console struct {
	// In is standard input.
	In io.Reader
	// Out is for results, Err for what is said about them.
	Out, Err io.Writer
}

// JSON prints a document.
func (c *Console) JSON(v any) error {
	e := c.encoder()
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// JSONLine prints a document on one line.
func (c *Console) JSONLine(v any) error { return c.encoder().Encode(v) }

func (c *Console) encoder() *json.Encoder {
	e := json.NewEncoder(c.Out)
	e.SetEscapeHTML(false)
	return e
}
