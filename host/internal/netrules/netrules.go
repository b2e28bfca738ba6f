// Package netrules reads lists of domains and accepts only what srt accepts,
// because srt refuses a whole settings file for one bad entry.
package netrules

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/tomlfile"
)

// Parse reads a file of two lists, allow and deny, each optional. An unknown
// key, a wrong type or an entry that srt would refuse is a problem with its
// line.
func Parse(file string, data []byte) (allow, deny []origin.Value, err error) {
	entries, err := tomlfile.Parse(file, data)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		switch e.Origin.Element {
		case "allow":
			allow, err = Allow(e)
		case "deny":
			deny, err = Deny(e)
		default:
			err = e.Origin.Problem("is not a key of this file").WithHint("the keys are allow and deny")
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return allow, deny, nil
}

// Allow reads a list of domains that may be reached.
func Allow(e tomlfile.Entry) ([]origin.Value, error) { return list(e, CheckAllow) }

// Deny reads a list of domains that may not be reached.
func Deny(e tomlfile.Entry) ([]origin.Value, error) { return list(e, CheckDeny) }

func list(e tomlfile.Entry, check func(origin.Value) error) ([]origin.Value, error) {
	values, err := e.Strings()
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		if err := check(v); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// CheckAllow reports what is wrong with an entry of an allow list: it is a
// name with an inner dot, "localhost", "*." before a name of at least two
// labels, an IPv4 address or an IPv6 address in brackets, each with an
// optional port.
//
// srt also accepts names that can match no host, such as one with a space.
// They are refused here, where the user sees it.
func CheckAllow(v origin.Value) error { return check(v, false) }

// CheckDeny reports what is wrong with an entry of a deny list, which may also
// be "*".
func CheckDeny(v origin.Value) error { return check(v, true) }

func check(v origin.Value, deny bool) error {
	reason, hint := fault(v.Text, deny)
	if reason == "" {
		return nil
	}
	err := v.Origin.Problem("%q %s", v.Text, reason)
	err.Hint = hint
	return err
}

// fault says in words what is wrong with an entry, and what to write instead
// where that is plain.
func fault(entry string, deny bool) (reason, hint string) {
	if entry == "" {
		return "is empty", ""
	}
	if strings.ContainsFunc(entry, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "holds a space or a control character", ""
	}
	if strings.Contains(entry, "/") {
		if u, err := url.Parse(entry); err == nil && u.Hostname() != "" {
			return "is a URL, not a domain", fmt.Sprintf("write %q", u.Hostname())
		}
		return "holds a slash: a URL, a path or an address range is not a domain", ""
	}
	if strings.HasPrefix(entry, "[") {
		return faultIPv6(entry)
	}
	if strings.Count(entry, ":") > 1 {
		if _, err := netip.ParseAddr(entry); err == nil {
			return "is an IPv6 address without brackets", fmt.Sprintf("write %q", "["+entry+"]")
		}
		return "holds more than one colon", ""
	}
	host, port, hasPort := strings.Cut(entry, ":")
	if hasPort && !validPort(port) {
		return "has no port from 1 to 65535 after the colon", ""
	}
	if deny && host == "*" {
		return "", ""
	}
	return faultName(host)
}

func faultIPv6(entry string) (reason, hint string) {
	inner, rest, closed := strings.Cut(entry[1:], "]")
	addr, err := netip.ParseAddr(inner)
	if !closed || err != nil || !addr.Is6() {
		return "is not an IPv6 address in brackets", ""
	}
	if port, hasPort := strings.CutPrefix(rest, ":"); rest != "" && (!hasPort || !validPort(port)) {
		return "has no port from 1 to 65535 after the address", ""
	}
	return "", ""
}

func faultName(host string) (reason, hint string) {
	if host == "localhost" {
		return "", ""
	}
	name, wildcard := strings.CutPrefix(host, "*.")
	if strings.Contains(name, "*") {
		return `has a "*" elsewhere than in "*." at its start`, ""
	}
	if ascii, err := idna.Lookup.ToASCII(name); err == nil && ascii != name && !isASCII(name) {
		return "is not spelled as it is looked up", fmt.Sprintf("write %q", host[:len(host)-len(name)]+ascii)
	}
	labels := strings.Split(name, ".")
	if slices.Contains(labels, "") {
		return "has an empty label", ""
	}
	if len(labels) < 2 && wildcard {
		return `is too broad: two labels must follow the "*."`, ""
	}
	if len(labels) < 2 {
		return `is not a domain: it has no dot and is not "localhost"`, ""
	}
	if i := slices.IndexFunc(labels, func(l string) bool { return !isLabel(l) }); i >= 0 {
		return fmt.Sprintf("is not a domain: a label holds letters, digits, - and _, unlike %q", labels[i]), ""
	}
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" {
		if addr, err := netip.ParseAddr(name); err != nil || !addr.Is4() {
			return "ends as an IPv4 address does and is not one", ""
		}
		if wildcard {
			return "is a wildcard before an address, which matches nothing", ""
		}
	}
	return "", ""
}

// validPort is srt's rule: 1 to 65535 without a leading zero.
func validPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0 && s[0] != '0'
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

func isLabel(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}
