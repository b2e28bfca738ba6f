package setup

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/problem"
)

// npmArgs install what the lock file says and nothing else, whatever the
// user's own npm settings are, and run no script of any package.
var npmArgs = []string{
	"ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error",
	"--no-engine-strict", "--no-global", "--package-lock", "--install-strategy=hoisted",
	"--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000",
}

// npm runs npm in dir, which holds a package.json and its lock file.
func (p *planner) npm(ctx context.Context, dir, omit string) error {
	npm := p.lookPath("npm")
	if npm == "" {
		return problem.New("", "npm", "not found on PATH").WithHint("install npm, then type: harness setup --apply")
	}
	_, stderr, err := p.run(ctx, dir, slices.Concat([]string{npm}, npmArgs, []string{omit})...)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return problem.New("", "setup", "interrupted; the old srt is as it was").WithHint("harness setup --apply")
	}
	for _, f := range npmFaults {
		if code := f.match.FindString(stderr); code != "" {
			return problem.New("", "npm", "%s (%s)", f.reason, code).WithHint("%s, then type: harness setup --apply", f.fix)
		}
	}
	return problem.New("", "npm", "%w: %s", err, npmMessage(stderr)).WithHint("try again: harness setup --apply")
}

var npmFaults = []struct {
	match       *regexp.Regexp
	reason, fix string
}{
	{regexp.MustCompile(`\b(ENOSPC|EDQUOT)\b`), "no space is left on the disk", "free 400 MB"},
	{regexp.MustCompile(`\b(EACCES|EPERM|EROFS)\b`), "a file cannot be written", "see whose ~/.npm and ~/.local are (ls -ld), and change that"},
	{regexp.MustCompile(`\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT)\b`),
		"the package registry cannot be reached", "see to the network or proxy (npm config get registry)"},
	{regexp.MustCompile(`\b(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT_LOCALLY|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_HAS_EXPIRED)\b`),
		"the package registry's certificate is not trusted", "set NODE_EXTRA_CA_CERTS to your organisation's certificates"},
	{regexp.MustCompile(`\b(E401|E403|E404)\b`), "the package registry refuses a package", "see which registry npm uses (npm config get registry)"},
	{regexp.MustCompile(`\bEINTEGRITY\b`), "a package is not the one that the harness was made for", "try npm cache verify"},
}

// npmMessage is the line of npm's output that says what is wrong.
func npmMessage(stderr string) string {
	for line := range strings.Lines(stderr) {
		if msg, ok := strings.CutPrefix(line, "npm error "); ok && !strings.HasPrefix(msg, "code ") {
			return strings.TrimSpace(msg)
		}
	}
	return lastLine(stderr)
}
