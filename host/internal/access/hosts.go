package access

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/srt"
)

// hosts are the domain lists of a policy, by what they match.
type hosts struct {
	denied, allowed domains
}

// domains is one list. An entry is found by the host that it names or, after a
// "*.", by the domain that it names.
type domains struct {
	rule         string
	exact, below map[string][]domain
	every        []domain
}

// domain is one entry; a port of 0 is every port.
type domain struct {
	order int
	port  int
	entry origin.Value
}

func newHosts(p *srt.Policy) *hosts {
	return &hosts{
		denied:  newDomains(DeniedDomains, p.DeniedDomains),
		allowed: newDomains(AllowedDomains, p.AllowedDomains),
	}
}

func newDomains(rule string, entries []origin.Value) domains {
	d := domains{rule: rule, exact: map[string][]domain{}, below: map[string][]domain{}}
	for i, e := range entries {
		host, port := splitEntry(e.Text)
		host = strings.ToLower(host)
		one := domain{i, port, e}
		if host == "*" {
			d.every = append(d.every, one)
		} else if base, ok := strings.CutPrefix(host, "*."); ok {
			d.below[base] = append(d.below[base], one)
		} else {
			d.exact[host] = append(d.exact[host], one)
		}
	}
	return d
}

// ask answers in the order of srt's proxy: the denied domains, then the
// allowed ones, else no.
func (h *hosts) ask(hostport string) Verdict {
	host, port := splitTarget(hostport)
	if !validHost(host) {
		return Verdict{Rule: Default, Reason: "srt refuses it as no name of a host"}
	}
	host = canonicalHost(host)
	denied, allowed := h.denied.match(host), h.allowed.match(host)
	v := Verdict{Rule: Default, Reason: "no entry of " + AllowedDomains + " names it"}
	decided := false
	for _, list := range []struct {
		rule    string
		found   []domain
		allowed bool
		reason  string
	}{
		{DeniedDomains, denied, false, "it is a denied domain, and a deny goes before an allow"},
		{AllowedDomains, allowed, true, "it is an allowed domain"},
	} {
		for _, d := range list.found {
			switch {
			case !decided && (d.port == 0 || d.port == port):
				decided = true
				v.Allowed, v.Rule, v.Entry, v.Reason = list.allowed, list.rule, d.entry, list.reason
			default:
				v.Touches = append(v.Touches, Touch{Rule: list.rule, Entry: d.entry})
				if !decided && list.allowed {
					v.Reason = "it is allowed on port " + strconv.Itoa(d.port) + " alone"
				}
			}
		}
	}
	return v
}

// match are the entries that name host, whatever their port, in their order.
func (d *domains) match(host string) []domain {
	out := append([]domain(nil), d.every...)
	out = append(out, d.exact[host]...)
	if _, err := netip.ParseAddr(host); err != nil { // no part of an address is a domain
		for rest := host; ; {
			_, after, ok := strings.Cut(rest, ".")
			if !ok {
				break
			}
			rest = after
			out = append(out, d.below[rest]...)
		}
	}
	slices.SortFunc(out, func(a, b domain) int { return a.order - b.order })
	return out
}

// splitEntry splits an optional ":port" off an entry. What is no port stays
// part of the host, and then matches nothing.
func splitEntry(text string) (string, int) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		addr, rest, ok := strings.Cut(inner, "]")
		if !ok {
			return text, 0
		}
		addr, _, _ = strings.Cut(addr, "%")
		addr = canonicalHost(addr)
		if rest == "" {
			return addr, 0
		}
		if port := parsePort(strings.TrimPrefix(rest, ":")); port > 0 && rest[0] == ':' {
			return addr, port
		}
		return text, 0
	}
	host, suffix, ok := strings.Cut(text, ":")
	if !ok {
		return text, 0
	}
	if strings.Contains(suffix, ":") { // an address without brackets
		addr, _, _ := strings.Cut(text, "%")
		return canonicalHost(addr), 0
	}
	if port := parsePort(suffix); port > 0 {
		return host, port
	}
	return text, 0
}

// splitTarget splits an optional ":port" off the host of a question.
func splitTarget(text string) (string, int) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if addr, rest, ok := strings.Cut(inner, "]"); ok {
			if port := parsePort(strings.TrimPrefix(rest, ":")); port > 0 {
				return addr, port
			}
			if rest == "" {
				return addr, 443
			}
		}
		return text, 443
	}
	if host, suffix, ok := strings.Cut(text, ":"); ok {
		if port := parsePort(suffix); port > 0 {
			return host, port
		}
	}
	return text, 443
}

// parsePort is the port that text spells in plain decimal, or 0.
func parsePort(text string) int {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || text[0] == '0' || text[0] == '+' {
		return 0
	}
	return int(n)
}

// validHost tells whether srt takes host for a host at all: an address without
// a zone, or letters, digits, dots, hyphens and underscores.
func validHost(host string) bool {
	if host == "" || len(host) > 255 {
		return false
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Zone() == ""
	}
	return strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// canonicalHost is host as it will be connected to: lower case, without the
// last dot, and an address in its one spelling, of whichever it was written
// in. What is no host is returned as it is.
func canonicalHost(host string) string {
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		return addr.Unmap().String()
	}
	lower := strings.ToLower(host)
	if numeric(lower) {
		if addr, ok := parseIPv4(lower); ok {
			return addr.String()
		}
		return lower
	}
	return strings.TrimSuffix(lower, ".")
}

// numeric tells whether the last label of host is a number, which makes all of
// it an IPv4 address or nothing.
func numeric(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" {
		return false
	}
	hex, ok := strings.CutPrefix(last, "0x")
	return strings.Trim(last, "0123456789") == "" || ok && strings.Trim(hex, "0123456789abcdef") == ""
}

// parseIPv4 reads an address of one to four parts in decimal, octal or
// hexadecimal, the last of which fills what is left.
func parseIPv4(host string) (netip.Addr, bool) {
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var addr uint64
	for i, part := range parts {
		n, ok := parseNumber(part)
		last := i == len(parts)-1
		if !ok || !last && n > 255 || last && n >= 1<<(8*(5-len(parts))) {
			return netip.Addr{}, false
		}
		if last {
			addr += n
		} else {
			addr += n << (8 * (3 - i))
		}
	}
	return netip.AddrFrom4([4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)}), true
}

// parseNumber reads one part of such an address.
func parseNumber(part string) (uint64, bool) {
	digits, base := part, 10
	switch {
	case part == "":
		return 0, false
	case strings.HasPrefix(part, "0x"):
		digits, base = part[2:], 16
	case len(part) > 1 && part[0] == '0':
		digits, base = part[1:], 8
	}
	if digits == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(digits, base, 40)
	return n, err == nil && digits[0] != '+'
}
