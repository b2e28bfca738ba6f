package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Nearest is the word of known that word was probably meant to be: one that it
// begins, or that at most two typing errors keep apart from it. It is empty
// where there is none.
func Nearest(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		d := distance(word, k)
		if len(word) > 1 && strings.HasPrefix(k, word) {
			d = 1
		}
		if d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// distance counts the letters to insert, to delete, to replace or to swap with
// their neighbour that make a out of b.
func distance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return 100
	}
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j-1]+cost, row[j]+1, next[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// JSON is an error of encoding/json in the words of a user, who does not know
// the types that the file is read into.
func JSON(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what, _, _ := strings.Cut(e.Value, " ") // a number comes with its digits
		if e.Field == "" {
			return fmt.Errorf("is a JSON %s where something else belongs", what)
		}
		return fmt.Errorf("%s: is a JSON %s where something else belongs", e.Field, what)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("is no JSON: %w", e)
	}
	return err
}
