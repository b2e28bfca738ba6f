package access

import (
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/internal/srt"
)

func TestHost(t *testing.T) {
	settings := srt.Settings{Network: srt.Network{
		AllowedDomains: []string{"github.com", "*.example.org", "Upper.Example.com", "only.port.net:8443", "10.1.2.3", "[2001:DB8:0:0::1]:443", "localhost"},
		DeniedDomains:  []string{"bad.example.org", "*.deny.example.org", "all.example.org:22"},
	}}
	m := New(settings.Policy("settings.json"), "linux", "/home/u")
	for _, tc := range []struct {
		name, target string
		allowed      bool
		rule, entry  string
	}{
		{"an entry allows its host", "github.com", true, AllowedDomains, "github.com"},
		{"on every port", "github.com:22", true, AllowedDomains, "github.com"},
		{"in any case, with a last dot", "GitHub.COM.", true, AllowedDomains, "github.com"},
		{"an entry in upper case counts", "upper.example.com", true, AllowedDomains, "Upper.Example.com"},
		{"but not what lies below it", "api.github.com", false, Default, ""},
		{"a wildcard allows what lies below", "a.b.example.org", true, AllowedDomains, "*.example.org"},
		{"but not the domain itself", "example.org", false, Default, ""},
		{"nor a name that only ends so", "evilexample.org", false, Default, ""},
		{"a deny goes before an allow", "bad.example.org", false, DeniedDomains, "bad.example.org"},
		{"a wildcard deny too", "x.deny.example.org", false, DeniedDomains, "*.deny.example.org"},
		{"a deny with a port is for that port", "all.example.org:22", false, DeniedDomains, "all.example.org:22"},
		{"and no other", "all.example.org", true, AllowedDomains, "*.example.org"},
		{"an allow with a port is for that port", "only.port.net:8443", true, AllowedDomains, "only.port.net:8443"},
		{"and no other", "only.port.net", false, Default, ""},
		{"an address in any spelling", "0x0a.0x010203", true, AllowedDomains, "10.1.2.3"},
		{"an address as IPv6", "[::ffff:10.1.2.3]:80", true, AllowedDomains, "10.1.2.3"},
		{"an IPv6 address in any spelling", "[2001:db8::1]", true, AllowedDomains, "[2001:DB8:0:0::1]:443"},
		{"a host with a space is none", "a b.example.org", false, Default, ""},
		{"an address with a zone is none", "[fe80::1%x.example.org]", false, Default, ""},
		{"nothing is no host", "", false, Default, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := m.Host(tc.target)
			if v.Allowed != tc.allowed || v.Rule != tc.rule || v.Entry.Text != tc.entry {
				t.Errorf("Host(%q) = %+v", tc.target, v)
			}
			if v.Reason == "" {
				t.Error("no reason")
			}
		})
	}
	if v := m.Host("only.port.net:80"); v.Reason != "it is allowed on port 8443 alone" || len(v.Touches) != 1 {
		t.Errorf("an entry for another port is not named: %+v", v)
	}
}

// TestHostAgreesWithProxy asks the model and srt's proxy about random hosts.
func TestHostAgreesWithProxy(t *testing.T) {
	o := newOracle(t)
	labels := []string{"a", "b", "com", "org", "A", "1", "127", "0x7f", "010", "256", "xn", "a_b", "", "300000", "localhost"}
	hosts := []string{"::1", "::ffff:1.2.3.4", "2001:DB8::1", "2001:db8:0:0:0:0:0:1", "fe80::1%a.com", "::1.2.3.4", "1.2.3.4", "127.1"}
	for s := range rounds(t) {
		r := rand.New(rand.NewPCG(s, 2))
		host := func() string {
			if r.IntN(4) == 0 {
				return hosts[r.IntN(len(hosts))]
			}
			parts := make([]string, 1+r.IntN(4))
			for i := range parts {
				parts[i] = labels[r.IntN(len(labels))]
			}
			return strings.Join(parts, ".")
		}
		entry := func() string {
			h := host()
			if strings.Contains(h, ":") {
				h = "[" + h + "]"
			}
			switch r.IntN(6) {
			case 0:
				h = "*." + h
			case 1:
				h += ":" + []string{"443", "80", "0", "x", "0443"}[r.IntN(5)]
			case 2:
				h = "*." + h + ":443"
			}
			return h
		}
		list := func(n int) []string {
			out := make([]string, n)
			for i := range out {
				out[i] = entry()
			}
			return out
		}
		settings := srt.Settings{Network: srt.Network{AllowedDomains: list(4), DeniedDomains: list(r.IntN(3))}}
		if r.IntN(8) == 0 {
			settings.Network.AllowedDomains[0] = "*"
		}
		m := New(settings.Policy("settings.json"), "linux", "/home/u")
		for range 50 {
			h, port := host(), []int{443, 80}[r.IntN(2)]
			want := o.ask(t, map[string]any{"allowed": settings.Network.AllowedDomains, "denied": settings.Network.DeniedDomains, "host": h, "port": port}).Status == 0
			if v := m.Host(net.JoinHostPort(h, strconv.Itoa(port))); v.Allowed != want {
				t.Fatalf("HARNESS_ACCESS_SEED=%d: %s:%d with %+v: the proxy says %v, the model %+v", s, h, port, settings.Network, want, v)
			}
		}
	}
}

// TestGlobAgrees asks the model's patterns and srt's about random names.
func TestGlobAgrees(t *testing.T) {
	o := newOracle(t)
	tokens := []string{"/", "*", "**", "**/", "?", "a", "b", "[ab]", "[", "]", "[]", "[b-a]", "[a-c]", "[^a]", "[!a]", "[a-]", "[a/b]", ".", "é", "(", "\\"}
	names := []string{"a", "b", "/", "c", ".", "[", "]", "^", "!", "-", "é", "*", "(", "\\"}
	for s := range rounds(t) {
		r := rand.New(rand.NewPCG(s, 3))
		join := func(from []string, n int) string {
			var b strings.Builder
			for range n {
				b.WriteString(from[r.IntN(len(from))])
			}
			return b.String()
		}
		pattern := join(tokens, 1+r.IntN(6))
		re := globRegexp("", pattern)
		for range 40 {
			name := join(names, r.IntN(7))
			want := o.ask(t, map[string]any{"glob": pattern, "path": name}).Status == 0
			if re.MatchString(name) != want {
				t.Fatalf("HARNESS_ACCESS_SEED=%d: %q of %q: srt says %v, %v does not", s, name, pattern, want, re)
			}
		}
	}
}
