package explain

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"

	"golang.org/x/net/idna"

	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
)

// Target is what an operation is asked about, from the user's words: an
// absolute path, where "~" is home and a relative path starts at dir, or a
// host with an optional port, taken out of a URL where the words are one.
func Target(home, dir, operation, words string) (string, error) {
	switch operation {
	case Read, Write:
		return pathOf(home, dir, words)
	case Host:
		return hostOf(words)
	}
	return "", unknown(operation)
}

func unknown(operation string) error {
	return problem.New("", operation, "is none of read, write and host").WithHint("harness explain claude write ~/.bashrc")
}

// maxPath is the longest path that Linux takes.
const maxPath = 4096

func pathOf(home, dir, words string) (string, error) {
	p := paths.Expand(home, words)
	switch {
	case words == "":
		return "", problem.New("", "TARGET", "is empty").WithHint("harness explain claude write ~/.bashrc")
	case strings.ContainsRune(words, 0):
		return "", problem.New("", "TARGET", "holds a NUL, which no path does")
	case !filepath.IsAbs(p) && dir == "":
		return "", problem.New("", words, "is relative, and the current directory is gone").WithHint("give the whole path")
	case !filepath.IsAbs(p):
		p = filepath.Join(dir, p)
	}
	if len(p) >= maxPath {
		return "", problem.New("", "TARGET", "is longer than any path: it has %d bytes", len(p))
	}
	return p, nil
}

// hostOf takes the host and the port out of a URL, or of git's user@host:path,
// and spells a name as it is looked up.
func hostOf(words string) (string, error) {
	host := words
	if u, err := url.Parse(words); err == nil && u.Host != "" {
		host = u.Host
		if port := map[string]string{"http": "80", "ssh": "22", "git": "9418"}[u.Scheme]; port != "" && u.Port() == "" {
			host += ":" + port
		}
	} else if user, rest, ok := strings.Cut(words, "@"); ok && user != "" {
		host, _, _ = strings.Cut(rest, ":")
		host += ":22"
	} else if rest, _, ok := strings.Cut(words, "/"); ok && rest != "" {
		host = rest
	}
	if strings.HasPrefix(host, "*.") {
		return "", problem.New("", words, "is a pattern, not a host").WithHint("ask for a host that it names: %s", "www"+host[1:])
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		return "[" + host + "]", nil
	}
	name, port, hasPort := strings.Cut(host, ":")
	if ascii, err := idna.Lookup.ToASCII(name); err == nil && ascii != "" {
		name = ascii
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" {
		return "", problem.New("", words, "names no host").WithHint("harness explain claude host github.com")
	}
	if hasPort {
		name += ":" + port
	}
	return name, nil
}
