package scope

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
)

// place is a temporary home with a workspace in it.
type place struct {
	t        *testing.T
	home, ws string
	env      []string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, home: home, ws: filepath.Join(home, "Forschung", "ein projekt")}
	p.mkdir(p.ws)
	p.env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GOTOOLCHAIN=local", "GOPROXY=off", "GOFLAGS=-mod=mod"}
	return p
}

func (p *place) mkdir(dir string) {
	p.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) write(name, content string) {
	p.t.Helper()
	p.mkdir(filepath.Dir(name))
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// system is the world of a run in the workspace.
func (p *place) system(env ...string) *system.System {
	s := system.Host()
	s.Env = slices.Concat(p.env, env)
	s.Dir = p.ws
	s.Stdin = nil
	return s
}

func (p *place) scope(s *system.System, o Options) *Scope {
	p.t.Helper()
	o.Home = p.home
	sc, err := New(s, o)
	if err != nil {
		p.t.Fatal(err)
	}
	return sc
}

func TestNewRefusesWorkspaces(t *testing.T) {
	p := newPlace(t)
	p.mkdir(p.home + "/.ssh/x")
	p.write(p.home+"/file", "")
	secret := p.home + "/secret"
	p.mkdir(secret + "/in")
	for rule, tt := range map[string]struct {
		workspace string
		options   Options
		want      string
	}{
		"home":                   {p.home, Options{}, "home directory"},
		"what holds home":        {filepath.Dir(p.home), Options{}, "home directory"},
		"the root":               {"/", Options{}, "home directory"},
		"a missing directory":    {p.home + "/none", Options{}, "is not a directory"},
		"a file":                 {p.home + "/file", Options{}, "is not a directory"},
		"in a protected path":    {p.home + "/.ssh/x", Options{}, "is protected"},
		"above a protected path": {p.home + "/.config", Options{}, "is not a directory"},
		"in what is hidden":      {secret + "/in", Options{DenyRead: []string{secret}}, "is hidden"},
		"in what governs":        {secret + "/in", Options{Protect: []string{secret}}, "governs the harness"},
	} {
		t.Run(rule, func(t *testing.T) {
			tt.options.Workspace, tt.options.Home = tt.workspace, p.home
			_, err := New(p.system(), tt.options)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, want %q", err, tt.want)
			}
			if problem.HintOf(err) == "" {
				t.Error("there is no hint")
			}
		})
	}
}

func TestNewResolves(t *testing.T) {
	p := newPlace(t)
	p.mkdir(p.ws + "/sub")
	p.write(p.home+"/real/token", "secret")
	p.mkdir(p.home + "/.cache")
	if err := os.Symlink(p.home+"/real/token", p.home+"/.cache/token"); err != nil {
		t.Fatal(err)
	}
	link := p.home + "/link"
	if err := os.Symlink(p.ws, link); err != nil {
		t.Fatal(err)
	}
	p.write(p.home+"/keys/a.pem", "")
	p.write(p.home+"/keys/b.pem", "")

	s := p.system()
	s.Dir = link + "/sub"
	sc := p.scope(s, Options{Workspace: "..", DenyRead: []string{
		p.home + "/.cache/token", p.home + "/absent", p.home + "/keys/*.pem", p.home, filepath.Dir(p.home) + "/**",
	}})
	if sc.Workspace != p.ws || sc.Dir != p.ws+"/sub" {
		t.Errorf("workspace %q, start %q", sc.Workspace, sc.Dir)
	}
	want := []string{p.home + "/real/token", p.home + "/keys/a.pem", p.home + "/keys/b.pem"}
	if diff := cmp.Diff(want, sc.Hidden); diff != "" {
		t.Errorf("hidden (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(p.home + "/go/pkg"); !os.IsNotExist(err) {
		t.Errorf("New created the module cache: %v", err)
	}
	sc.Create()
	if info, err := os.Stat(p.home + "/go/pkg"); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("Create did not make the module cache: %v, %v", info, err)
	}
}

func TestBwrapArgs(t *testing.T) {
	p := newPlace(t)
	p.write(p.home+"/.cache/hf/token", "")
	p.mkdir(p.home + "/creds")
	p.write(p.ws+"/tools/bin/harness", "")
	sc := &Scope{
		Workspace: p.ws, Dir: p.ws, Home: p.home,
		Writable:  []string{filepath.Dir(p.home), p.home + "/.cache", p.ws + "/.gocache"},
		Hidden:    []string{p.home + "/.cache/hf/token", p.home + "/creds"},
		Protected: []string{p.ws + "/tools/bin/harness"},
	}
	got := sc.BwrapArgs()
	if want := []string{"--ro-bind", "/", "/"}; !slices.Equal(got[:3], want) {
		t.Errorf("the arguments begin with %q, want %q", got[:3], want)
	}
	i := slices.Index(got, "--die-with-parent")
	want := []string{
		"--bind", filepath.Dir(p.home), filepath.Dir(p.home),
		"--ro-bind", p.home, p.home,
		"--bind", p.home + "/.cache", p.home + "/.cache",
		"--bind", p.ws, p.ws,
		"--bind", p.ws + "/.gocache", p.ws + "/.gocache",
		"--bind", p.ws + "/tools", p.ws + "/tools",
		"--bind", p.ws + "/tools/bin", p.ws + "/tools/bin",
		"--ro-bind", p.ws + "/tools/bin/harness", p.ws + "/tools/bin/harness",
		"--ro-bind", "/dev/null", p.home + "/.cache/hf/token",
		"--tmpfs", p.home + "/creds", "--remount-ro", p.home + "/creds",
		"--chdir", p.ws,
	}
	if diff := cmp.Diff(want, got[i+1:]); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if slices.Contains(got, "--new-session") {
		t.Error("a new session takes the terminal away")
	}
}

func TestSeatbeltProfile(t *testing.T) {
	sc := &Scope{
		Workspace: `/Users/me/"quoted" \ (x)`, Dir: "/", Home: "/Users/me",
		Writable:  []string{"/private/var/folders/x/T", "/private/tmp", "/Users/me/Library/Caches", "/Users/me/.cache", "/Users/me/go/pkg"},
		Hidden:    []string{"/Users/me/.cache/huggingface/token"},
		Protected: []string{"/private/tmp/a/harness"},
	}
	want := `(version 1)
(allow default)
(deny file-write*)
(allow file-write* (subpath "/private/tmp"))
(allow file-write* (subpath "/Users/me/.cache"))
(allow file-write* (subpath "/private/tmp/a"))
(allow file-write* (subpath "/Users/me/Library/Caches"))
(allow file-write* (subpath "/Users/me/go/pkg"))
(deny file-write* (subpath "/private/tmp/a/harness"))
(allow file-write* (subpath "/private/var/folders/x/T"))
(allow file-write* (subpath "/Users/me/\"quoted\" \\ (x)"))
(allow file-write* (literal "/dev/null"))
(allow file-write* (literal "/dev/zero"))
(allow file-write* (literal "/dev/tty"))
(allow file-write* (literal "/dev/stdout"))
(allow file-write* (literal "/dev/stderr"))
(allow file-write* (literal "/dev/ptmx"))
(allow file-write* (regex #"^/dev/fd/[0-9]+$") (regex #"^/dev/ttys[0-9]+$"))
(deny file-write-unlink (literal "/private/tmp/a"))
(deny file-read* file-write* (literal "/Users/me/.cache/huggingface/token"))
(deny network-outbound (remote unix-socket))
(allow network-outbound (remote unix-socket (path-literal "/private/var/run/mDNSResponder")))
(deny lsopen)
(deny appleevent-send)
(deny job-creation)
`
	if diff := cmp.Diff(want, sc.SeatbeltProfile()); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
}

func TestQuoteIsReadBackByAShell(t *testing.T) {
	argv := []string{"a b", "", "it's", `"`, "$HOME", "~", "*", "a\nb", `\`, "-n", "größe", "\xff", "$(id)", "x;y"}
	out, err := exec.Command("bash", "-c", "printf '%s\\0' "+Quote(argv)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Join(argv, "\x00")+"\x00", string(out)); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestCaptureKeepsBothEnds(t *testing.T) {
	var c capture
	c.Write([]byte("BEGIN"))
	for range 3 {
		c.Write([]byte(strings.Repeat("x", captureLimit/2)))
	}
	c.Write([]byte("END"))
	got := c.String()
	if !strings.HasPrefix(got, "BEGIN") || !strings.HasSuffix(got, "END") || !strings.Contains(got, "bytes left out]") {
		t.Errorf("output is %q … %q", got[:20], got[len(got)-20:])
	}
	if len(got) > captureLimit+100 {
		t.Errorf("kept %d bytes", len(got))
	}
	var small capture
	small.Write([]byte("a"))
	if small.String() != "a" {
		t.Errorf("a small output became %q", small.String())
	}
}
