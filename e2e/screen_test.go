package e2e

import "regexp"

// escapes are a terminal's control sequences.
var escapes = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(\x07|\x1b\\)|[ -/]*[0-~])`)

// plain is what a program wrote to a terminal, without control sequences, for
// words to be looked up in. A full-screen program may move between the words.
func plain(out []byte) string { return escapes.ReplaceAllString(string(out), " ") }
