package scope

import (
	"strings"
)

// SeatbeltProfile is the scope as a profile of macOS's sandbox-exec. The last
// rule that matches decides, so the order is that of [Scope.BwrapArgs].
func (sc *Scope) SeatbeltProfile() string {
	var b strings.Builder
	rule := func(action, ops, filter, path string) {
		b.WriteString("(" + action + " " + ops + " (" + filter + " " + seatbeltString(path) + "))\n")
	}
	b.WriteString("(version 1)\n(allow default)\n(deny file-write*)\n")
	for _, m := range sc.mounts() {
		action := "deny"
		if m.rw {
			action = "allow"
		}
		rule(action, "file-write*", "subpath", m.path)
	}
	for _, p := range []string{"/dev/null", "/dev/zero", "/dev/tty", "/dev/stdout", "/dev/stderr", "/dev/ptmx"} {
		rule("allow", "file-write*", "literal", p)
	}
	b.WriteString("(allow file-write* (regex #\"^/dev/fd/[0-9]+$\") (regex #\"^/dev/ttys[0-9]+$\"))\n")
	for _, p := range sc.Protected {
		for _, dir := range sc.pins(p) {
			rule("deny", "file-write-unlink", "literal", dir)
		}
	}
	for _, p := range sc.Hidden {
		filter := "literal"
		if isDir(p) {
			filter = "subpath"
		}
		rule("deny", "file-read* file-write*", filter, p)
	}
	b.WriteString(seatbeltServers)
	return b.String()
}

// seatbeltServers keeps a command from asking a server outside to act for it:
// by a UNIX socket, but for the one that looks names up, by Launch Services, by
// an Apple event or by a job of launchd's.
const seatbeltServers = `(deny network-outbound (remote unix-socket))
(allow network-outbound (remote unix-socket (path-literal "/private/var/run/mDNSResponder")))
(deny lsopen)
(deny appleevent-send)
(deny job-creation)
`

// seatbeltString quotes s for a profile, whose strings are Scheme's.
func seatbeltString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
