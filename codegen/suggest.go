package codegen

import (
	"slices"
	"strings"
)

// Nearest returns the candidate that a misspelt name most likely stands for, or
// "" when none is near enough to be worth suggesting.
func Nearest(name string, candidates []string) string {
	name = strings.TrimSpace(name)
	best, bestDistance := "", len(name)/3+1
	for _, c := range candidates {
		if strings.EqualFold(c, name) {
			return c
		}
		if d := distance(name, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if i := slices.IndexFunc(candidates, func(c string) bool { return strings.HasPrefix(c, name) }); best == "" && len(name) > 2 && i >= 0 {
		return candidates[i] // cut short: que for queue
	}
	return best
}

func didYouMean(name string, candidates []string) string {
	if n := Nearest(name, candidates); n != "" {
		return "did you mean \"" + n + "\"?"
	}
	return ""
}

// distance is the number of letters to insert, delete, replace or swap with
// their neighbour that turns a into b.
func distance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := above[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
