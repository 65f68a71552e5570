package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

// formatFlag declares -o with the formats that a command can print. The first is
// the default.
func formatFlag(set *flag.FlagSet, formats ...string) *string {
	format := formats[0]
	set.Func("o", fmt.Sprintf("`format`: %s (default %s)", strings.Join(formats, ", "), format), func(s string) error {
		if !slices.Contains(formats, s) {
			return fmt.Errorf("there are %s", strings.Join(formats, ", "))
		}
		format = s
		return nil
	})
	return &format
}
