package netrules

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/problem"
)

var accepted = []string{
	"example.com", "a.b", "EXAMPLE.com", "_dmarc.example.com", "x--y.example", "xn--bcher-kva.de",
	"localhost", "localhost:8080", "example.com:1", "example.com:65535",
	"*.example.com", "*.co.uk", "*.example.com:443",
	"127.0.0.1", "10.0.0.1:22", "[::1]", "[::1]:443", "[2001:db8::1]", "[::ffff:1.2.3.4]",
}

var refused = map[string]string{
	"":                        "is empty",
	" ":                       "a space",
	"a b.com":                 "a space",
	"example.com ":            "a space",
	"example.com\n":           "a space",
	"a\x00.com":               "a control character",
	"https://example.com":     "is a URL",
	"https://example.com/x":   "is a URL",
	"example.com/path":        "holds a slash",
	"10.0.0.0/8":              "holds a slash",
	"://":                     "holds a slash",
	"::1":                     "without brackets",
	"2001:db8::1":             "without brackets",
	"example.com:1:2":         "more than one colon",
	"example.com:":            "no port",
	"example.com:0":           "no port",
	"example.com:080":         "no port",
	"example.com:+80":         "no port",
	"example.com:65536":       "no port",
	"example.com:http":        "no port",
	":80":                     "empty label",
	"[::1":                    "not an IPv6 address",
	"[]":                      "not an IPv6 address",
	"[example.com]":           "not an IPv6 address",
	"[127.0.0.1]":             "not an IPv6 address",
	"[::1]x":                  "no port",
	"[::1]:0":                 "no port",
	"[::1]:":                  "no port",
	"*.":                      "empty label",
	"*.com":                   "too broad",
	"*.localhost":             "too broad",
	"*..com":                  "empty label",
	"*.example.com.":          "empty label",
	"*.*.example.com":         `has a "*" elsewhere`,
	"a.*.com":                 `has a "*" elsewhere`,
	"*example.com":            `has a "*" elsewhere`,
	"**":                      `has a "*" elsewhere`,
	"example":                 "no dot",
	"localhost.":              "empty label",
	".example.com":            "empty label",
	"example.com.":            "empty label",
	"a..b":                    "empty label",
	".":                       "empty label",
	"user@example.com":        "is not a domain",
	"example.com?x":           "is not a domain",
	"bücher.de":               "not spelled as it is looked up",
	"*.bücher.de":             "not spelled as it is looked up",
	"127.1":                   "ends as an IPv4 address does",
	"1.2.3.4.5":               "ends as an IPv4 address does",
	"256.1.1.1":               "ends as an IPv4 address does",
	"*.1.2.3.4":               "matches nothing",
	"exam\u200bple.com":       "not spelled as it is looked up",
	"example.com,example.org": "is not a domain",
}

func value(text string) origin.Value {
	return origin.Value{Text: text, Origin: origin.Origin{Source: "f", Line: 3, Element: "allow[0]"}}
}

func TestCheck(t *testing.T) {
	for _, entry := range accepted {
		for name, check := range map[string]func(origin.Value) error{"allow": CheckAllow, "deny": CheckDeny} {
			if err := check(value(entry)); err != nil {
				t.Errorf("%s of %q: %v", name, entry, err)
			}
		}
	}
	for entry, want := range refused {
		for name, check := range map[string]func(origin.Value) error{"allow": CheckAllow, "deny": CheckDeny} {
			if err := check(value(entry)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %q: got %v, want %q", name, entry, err, want)
			}
		}
	}
	for _, entry := range []string{"*", "*:22"} {
		if err := CheckDeny(value(entry)); err != nil {
			t.Errorf("deny of %q: %v", entry, err)
		}
		if err := CheckAllow(value(entry)); err == nil {
			t.Errorf("allow of %q is accepted", entry)
		}
	}
}

func TestHintSaysWhatToWrite(t *testing.T) {
	for entry, want := range map[string]string{
		"https://example.com/x": `write "example.com"`,
		"::1":                   `write "[::1]"`,
		"bücher.de":             `write "xn--bcher-kva.de"`,
		"*.bücher.de":           `write "*.xn--bcher-kva.de"`,
	} {
		if got := problem.HintOf(CheckAllow(value(entry))); got != want {
			t.Errorf("%q: hint %q, want %q", entry, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	allow, deny, err := Parse("network.toml", []byte("\ufeff# domains\r\nallow = [\r\n  \"a.b\",\r\n  # c\r\n  \"*.c.d\", \"e.f\"\r\n]\r\ndeny = ['*']\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range append(allow, deny...) {
		got = append(got, v.Text+" "+v.Origin.String())
	}
	want := "a.b network.toml:3: allow[0]|*.c.d network.toml:5: allow[1]|e.f network.toml:5: allow[2]|* network.toml:7: deny[0]"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}

	for rule, tt := range map[string]struct{ data, want string }{
		"both lists are optional":       {"", ""},
		"an unknown key":                {"allow = []\nalow = []", "n:2: alow: is not a key of this file"},
		"an unknown table":              {"[x]", "n:1: x: is not a key of this file"},
		"a string for a list":           {`allow = "a.b"`, "n:1: allow: must be a list of strings, not a string"},
		"an element of another type":    {"allow = [\n'a.b',\n3]", "n:3: allow[1]: must be a string, not a number"},
		"a bad entry, with its line":    {"allow = [\n'a.b',\n'https://x.y/']", `n:3: allow[1]: "https://x.y/" is a URL, not a domain`},
		"a wildcard of all is no allow": {"allow = ['*']", `n:1: allow[0]: "*" has a "*" elsewhere than in "*." at its start`},
		"syntax":                        {"allow = [\n", "n:1: "},
		"a key twice":                   {"allow = []\nallow = []", "n:2: allow: "},
	} {
		t.Run(rule, func(t *testing.T) {
			_, _, err := Parse("n", []byte(tt.data))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)):
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestSrtAcceptsWhatIsAccepted asks the real srt about every entry above and
// many made ones: it may accept more, never less.
func TestSrtAcceptsWhatIsAccepted(t *testing.T) {
	entries := append([]string{"*", "*:22"}, accepted...)
	for entry := range refused {
		entries = append(entries, entry)
	}
	made := rapid.StringOfN(rapid.SampledFrom([]rune(`ab1.-_*:[]/ 90é%`)), 0, 12, -1)
	for seed := range 2000 {
		entries = append(entries, made.Example(seed))
	}
	verdicts := askSrt(t, entries)
	for i, entry := range entries {
		if err := CheckAllow(value(entry)); err == nil && !verdicts[i].Allow {
			t.Errorf("%q is accepted as allow and srt refuses it", entry)
		}
		if err := CheckDeny(value(entry)); err == nil && !verdicts[i].Deny {
			t.Errorf("%q is accepted as deny and srt refuses it", entry)
		}
	}
	for i := range len(accepted) + 2 {
		if !verdicts[i].Deny {
			t.Errorf("srt refuses %q: the test asks it wrongly", entries[i])
		}
	}
}

type verdict struct{ Allow, Deny bool }

func askSrt(t *testing.T, entries []string) []verdict {
	srt := os.Getenv("HARNESS_TEST_SRT")
	if srt == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("HARNESS_TEST_SRT does not name an srt")
		}
		t.Skip("HARNESS_TEST_SRT does not name an srt")
	}
	in := filepath.Join(t.TempDir(), "entries.json")
	data, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in, data, 0o600); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/verdicts.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), srt, "--version")
	cmd.Env = append(os.Environ(), "NODE_OPTIONS=--import="+(&url.URL{Scheme: "file", Path: script}).String(), "VERDICTS_IN="+in)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []verdict
	if err := json.Unmarshal(out, &verdicts); err != nil || len(verdicts) != len(entries) {
		t.Fatalf("%d verdicts of %d entries: %v", len(verdicts), len(entries), err)
	}
	return verdicts
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("allow = ['a.b']\ndeny = ['*']"))
	f.Add([]byte("\ufeffallow = [\r\n'x:1', \"[::1]\"]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		allow, _, err := Parse("f", data)
		if err != nil && strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("more than one line: %q", err)
		}
		for _, v := range allow {
			if v.Origin.Line < 1 {
				t.Errorf("%q has no line", v.Text)
			}
		}
	})
}
