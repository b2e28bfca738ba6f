// Package verify proves the installed settings of a frontend: it starts srt with
// them and tries every rule from inside the sandbox.
package verify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/research-harness/harness/host/internal/access"
	"github.com/research-harness/harness/host/internal/audit"
	"github.com/research-harness/harness/host/internal/explain"
	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/front"
	"github.com/research-harness/harness/host/internal/launch"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/srt"
	"github.com/research-harness/harness/host/internal/system"
)

// limit is how long one sandbox may take. An ordinary one takes two seconds.
const limit = 30 * time.Second

// Report is what was found about one frontend.
type Report struct {
	Frontend string
	Tried    int // rules that were tried inside the sandbox
	Findings []audit.Finding
}

// Run verifies the frontends called names, or the chosen ones where there are
// none. It says to progress what it does. It leaves no file behind and changes
// no byte of one. An error is a fault of the machine or the arguments; what is
// wrong with the settings is a finding.
func Run(ctx context.Context, s *system.System, set *render.Set, names []string, progress func(string)) ([]Report, error) {
	frontends := set.Chosen
	if len(names) > 0 {
		frontends = nil
	}
	for _, name := range names {
		f, err := set.Find(name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(set.Chosen, func(c render.Frontend) bool { return c.Name == f.Name }) {
			list := ""
			for _, c := range set.Chosen {
				list += fmt.Sprintf("%q, ", c.Name)
			}
			file := cmp.Or(set.Profile.File, layout.Layout{Home: set.Home}.Profile())
			return nil, problem.New(file, "setup.frontends", "does not choose %s, so nothing is installed for it", f.Name).
				WithHint("set [setup] frontends = [%s%q] in it, then type: harness install --apply", list, f.Name)
		}
		if !slices.ContainsFunc(frontends, func(c render.Frontend) bool { return c.Name == f.Name }) {
			frontends = append(frontends, f)
		}
	}
	var out []Report
	for _, f := range frontends {
		policy, err := set.Policy(f.Name)
		if err != nil {
			return nil, err
		}
		progress("verifying " + f.Name)
		v := &verifier{s: s, set: set, frontend: f, at: layout.Layout{Home: set.Home}, policy: policy}
		v.report.Frontend = f.Name
		if err := v.run(ctx); err != nil {
			return nil, err
		}
		audit.Sort(v.report.Findings)
		out = append(out, v.report)
	}
	return out, nil
}

type verifier struct {
	s        *system.System
	set      *render.Set
	frontend render.Frontend
	at       layout.Layout
	policy   *srt.Policy // as installed, with the sources of a fresh render
	model    *access.Model
	cwd      string
	token    string
	report   Report

	reads  []read
	writes []write
	hosts  []host
}

// read is a path that must be visible inside, or must not be.
type read struct {
	path, id string // id as on the host
	want     bool
	rule     string
	entry    origin.Value
}

// write is a path that a session must be able to write, or must not.
type write struct {
	path          string // what is tried
	subject       string // what it stands for, at or below path
	want          bool
	finding, rule string
	entry         origin.Value
	what          string // the subject for people, where it is no entry
}

// host is one that a session must reach, or must not.
type host struct {
	name  string
	want  bool
	entry origin.Value
}

func (v *verifier) run(ctx context.Context) error {
	if !v.installed() {
		return nil
	}
	v.model = access.New(v.policy, v.s.OS, v.set.Home)
	v.report.Findings = append(v.report.Findings, audit.Check(v.policy, audit.For(v.s, v.set, v.frontend))...)

	v.token = ".harness-probe-" + strings.ToLower(rand.Text()[:12])
	cwd, err := os.MkdirTemp(v.tempDir(), "harness-verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cwd)
	if v.cwd, err = filepath.EvalSymlinks(cwd); err != nil {
		return err
	}
	v.model = v.model.WithCwd(v.cwd)
	v.plan()
	defer v.clean()
	r, err := v.probe(ctx)
	if err != nil || r == nil {
		return err
	}
	v.judge(r)
	return nil
}

// tempDir is a directory that the session sees, for it to start in.
func (v *verifier) tempDir() string {
	if v.model.Read("/tmp").Allowed {
		return "/tmp"
	}
	return ""
}

// find adds a finding.
func (v *verifier) find(id string, s audit.Severity, subject, fix, format string, args ...any) {
	v.report.Findings = append(v.report.Findings, audit.Finding{
		ID: id, Frontend: v.frontend.Name, Severity: s, Subject: paths.Tilde(v.set.Home, subject),
		Message: problem.OneLine(fmt.Sprintf(format, args...)), Fix: fix,
	})
}

const again = "harness install --apply"

// installed reads the installed settings into the policy, and reports whether
// they can be tried. Where they are not what an install would write now, they
// are tried all the same.
func (v *verifier) installed() bool {
	file := v.at.Settings(v.frontend.Name)
	data, err := files.Read(file)
	if err != nil {
		v.find("settings-missing", audit.Error, file, again, "%s cannot be read: %s", paths.Tilde(v.set.Home, file), errors.Unwrap(err))
		return false
	}
	if bytes.Equal(data, v.policy.Settings().Encode()) {
		return true
	}
	settings, err := srt.Decode(data)
	if err != nil {
		v.find("settings-broken", audit.Error, file, again, "%s: %v", paths.Tilde(v.set.Home, file), err)
		return false
	}
	v.find("settings-stale", audit.Warning, file, again, "%s is not what an install would write now", paths.Tilde(v.set.Home, file))
	installed := settings.Policy(file)
	installed.Frontend = v.frontend.Name
	fresh := v.policy
	source(installed.AllowedDomains, fresh.AllowedDomains)
	source(installed.DeniedDomains, fresh.DeniedDomains)
	source(installed.AllowWrite, fresh.AllowWrite)
	source(installed.DenyWrite, fresh.DenyWrite)
	source(installed.DenyRead, fresh.DenyRead)
	source(installed.AllowRead, fresh.AllowRead)
	v.policy = installed
	return true
}

// source gives the entries of a list the origins that a fresh render gives
// those of the same text.
func source(list, fresh []origin.Value) {
	at := make(map[string]origin.Origin, len(fresh))
	for _, f := range fresh {
		at[f.Text] = f.Origin
	}
	for i := range list {
		if o, ok := at[list[i].Text]; ok {
			list[i].Origin = o
		}
	}
}

// plan decides what to try.
func (v *verifier) plan() {
	home := v.set.Home
	var state []string
	for _, p := range v.frontend.State {
		state = append(state, p.Path)
	}
	for _, w := range v.policy.AllowWrite {
		p := paths.TrimGlobstar(w.Text)
		info, err := os.Stat(p)
		switch {
		case paths.IsGlob(w.Text), v.linked(p): // the audit tells of it
		case errors.Is(err, fs.ErrNotExist) && slices.Contains(state, p):
			v.find("state-missing", audit.Error, p, again, "%s, the state of %s, does not exist, so a session loses what it writes there",
				paths.Tilde(home, p), v.frontend.Name)
		case errors.Is(err, fs.ErrNotExist):
			v.find("write-missing", audit.Note, p, "mkdir -p "+paths.Shell(home, p),
				"allowWrite %q (%s) does nothing while %s does not exist", paths.Tilde(home, w.Text), w.Origin, paths.Tilde(home, p))
		case err != nil || !info.IsDir() && !info.Mode().IsRegular() || unix.Access(p, unix.W_OK) != nil: // nobody can here
		default:
			v.writes = append(v.writes, write{path: p, subject: p, want: true, finding: "write-blocked", rule: access.AllowWrite, entry: w})
		}
	}
	for _, d := range v.policy.DenyWrite {
		if !paths.IsGlob(d.Text) {
			v.refuse("write-open", access.DenyWrite, d, paths.TrimGlobstar(d.Text), "")
		}
	}
	for _, other := range v.set.Frontends {
		if other.Name == v.frontend.Name {
			continue
		}
		for _, p := range other.State {
			v.refuse("foreign-state-open", "", origin.Value{}, p.Path, "the state of "+other.Name)
		}
	}
	for _, g := range audit.For(v.s, v.set, v.frontend).Guarded {
		v.refuse("governs-open", "", origin.Value{}, g.Path, g.What)
	}
	v.refuse("home-open", "", origin.Value{}, filepath.Join(home, v.token), "the rest of home")

	for _, d := range v.policy.DenyRead {
		v.readable(access.DenyRead, d, false)
	}
	for _, a := range v.policy.AllowRead {
		v.readable(access.AllowRead, a, true)
	}
	if entries, err := os.ReadDir(home); err == nil {
		for _, e := range entries[:min(len(entries), 100)] {
			p := filepath.Join(home, e.Name())
			if verdict := v.model.Read(p); !verdict.Allowed && verdict.Entry.Text == home {
				v.look(p, "", verdict.Entry, false)
			}
		}
	}
	v.planHosts()
}

// refuse plans to try a write that must not reach the host. Of a path that is
// missing the first component that is tries it.
func (v *verifier) refuse(id, rule string, entry origin.Value, p, what string) {
	v.writes = append(v.writes, write{path: firstMissing(p), subject: p, finding: id, rule: rule, entry: entry, what: what})
}

// readable plans to look at what an entry of a read list names.
func (v *verifier) readable(rule string, e origin.Value, want bool) {
	p := paths.TrimGlobstar(e.Text)
	if !paths.IsGlob(p) {
		v.look(p, rule, e, want)
		return
	}
	if strings.Contains(p, "**") {
		return // to find what it names could take longer than all the rest
	}
	found, _ := filepath.Glob(p)
	for _, q := range found[:min(len(found), 5)] {
		v.look(q, rule, e, want)
	}
}

func (v *verifier) look(p, rule string, e origin.Value, want bool) {
	if here := look(p); here.Open {
		v.reads = append(v.reads, read{path: p, id: here.ID, want: want, rule: rule, entry: e})
	}
}

func (v *verifier) planHosts() {
	add := func(d origin.Value, want bool) {
		name := strings.Replace(d.Text, "*.", "harness-probe.", 1)
		if d.Text == "*" {
			return
		}
		if v.model.Host(name).Allowed != want {
			return // the audit tells of it
		}
		if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") || !strings.Contains(name, ":") {
			name += ":443"
		}
		v.hosts = append(v.hosts, host{name, want, d})
	}
	for _, d := range v.policy.AllowedDomains {
		add(d, true)
	}
	for _, d := range v.policy.DeniedDomains {
		add(d, false)
	}
	add(origin.Value{Text: "harness-probe.invalid"}, false)
}

// linked tells whether a link stands on the way to p.
func (v *verifier) linked(p string) bool {
	real, err := filepath.EvalSymlinks(p)
	return err == nil && real != p && v.s.OS == "linux"
}

func exists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}

// firstMissing is p, or the first component on the way to it that is missing.
func firstMissing(p string) string {
	for p != "/" && !exists(filepath.Dir(p)) {
		p = filepath.Dir(p)
	}
	return p
}

// probe runs the probe in the sandbox. It returns nil where srt did not start,
// which is a finding.
func (v *verifier) probe(ctx context.Context) (*response, error) {
	program := v.at.Host()
	if !exists(program) {
		program = front.Host(v.s.Exe)
	}
	if verdict := v.model.Read(program); !verdict.Allowed {
		v.find("harness-hidden", audit.Error, program, again, "the session cannot see %s, so nothing can be tried: %s", program, verdict.Reason)
		return nil, nil
	}
	up, err := newUpstream()
	if err != nil {
		return nil, err
	}
	defer up.Close()

	q := request{Token: v.token, Loopback: up.Addr().String()}
	for _, r := range v.reads {
		q.Read = append(q.Read, r.path)
	}
	for _, w := range v.writes {
		q.Write = append(q.Write, w.path)
	}
	for _, h := range v.hosts {
		q.Hosts = append(q.Hosts, h.name)
	}
	in, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, v.at.Srt(), "--settings", v.at.Settings(v.frontend.Name), "--", program, Verb)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 3 * time.Second
	cmd.Dir = v.cwd
	cmd.Env = launch.SessionEnv(v.s, v.set.Home, v.model)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		cmd.Env = append(cmd.Env, name+"=http://"+up.Addr().String())
	}
	cmd.Env = append(cmd.Env, "NO_PROXY=", "no_proxy=")
	cmd.Stdin = bytes.NewReader(in)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var r response
	if jsonErr := json.Unmarshal(stdout.Bytes(), &r); err != nil || jsonErr != nil ||
		len(r.Read) != len(q.Read) || len(r.Write) != len(q.Write) || len(r.Hosts) != len(q.Hosts) {
		if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			return nil, ctx.Err()
		}
		why := cmp.Or(lastLine(stderr.String()), message(err), "no answer")
		if _, reason := v.model.Fault(); reason != "" {
			why = reason
		}
		v.find("no-start", audit.Error, v.at.Settings(v.frontend.Name), "harness setup --apply", "srt starts nothing with the settings: %s", why)
		return nil, nil
	}
	return &r, nil
}

// lastLine is the last line of what a program said that is not empty.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return problem.OneLine(lines[len(lines)-1])
}

// judge compares what the probe found with what must be.
func (v *verifier) judge(r *response) {
	home := v.set.Home
	world := explain.For(v.s, v.set, v.frontend)
	world.Dir = v.cwd
	change := func(operation, target string) string {
		a, err := explain.Ask(world, v.policy, operation, target)
		if err != nil {
			return again
		}
		return a.Change
	}
	for i, c := range v.reads {
		seen := r.Read[i].Open && r.Read[i].ID == c.id
		if seen == c.want {
			continue
		}
		verdict := v.model.Read(c.path)
		why, fix := because(verdict, seen), change("read", c.path)
		switch {
		case c.want:
			v.find("read-blocked", audit.Warning, c.path, fix, "%s does not hold for %s: %s", v.name(c.rule, c.entry), paths.Tilde(home, c.path), why)
		case c.rule == "":
			v.find("home-open", audit.Error, c.path, again, "a session can read %s, which lies in the hidden part of home: %s", paths.Tilde(home, c.path), why)
		default:
			v.find("read-open", audit.Error, c.path, fix, "%s does not hold for %s: %s", v.name(c.rule, c.entry), paths.Tilde(home, c.path), why)
		}
	}
	for i, c := range v.writes {
		reached := v.reached(c.path, r.Write[i])
		if reached == c.want {
			continue
		}
		verdict := v.model.Write(c.path)
		why := because(verdict, reached)
		switch {
		case c.want:
			if why == "" || r.Write[i].Error != "" && verdict.Allowed {
				why = r.Write[i].Error
			}
			if !v.told(c.subject) {
				v.find(c.finding, audit.Error, c.subject, change("write", c.path), "%s does not hold: %s", v.name(c.rule, c.entry), why)
			}
		case c.rule != "":
			v.find(c.finding, audit.Error, c.subject, change("write", c.path), "%s does not hold: %s", v.name(c.rule, c.entry), why)
		case !v.told(c.subject):
			v.find(c.finding, audit.Error, c.subject, again, "a session can write %s, %s: %s", paths.Tilde(home, c.subject), c.what, why)
		}
	}
	for i, c := range v.hosts {
		status := r.Hosts[i]
		switch {
		case c.want && (status == 0 || status == 403 || status == 407):
			v.find("domain-blocked", audit.Error, c.name, change("host", c.name), "%s does not hold: the proxy answers %s with %d", v.name(access.AllowedDomains, c.entry), c.name, status)
		case !c.want && status != 403 && c.entry.Origin.Source == "":
			v.find("domain-open", audit.Error, c.name, again, "the proxy answers %s, which nothing allows, with %d and not with 403", c.name, status)
		case !c.want && status != 403:
			v.find("domain-open", audit.Error, c.name, change("host", c.name), "%s does not hold: the proxy answers %s with %d", v.name(access.DeniedDomains, c.entry), c.name, status)
		}
	}
	const reinstall = "harness setup --apply --force"
	if r.Loopback == "" && !(v.s.OS == "darwin" && v.policy.AllowLocalBinding) {
		v.find("loopback-open", audit.Error, "127.0.0.1", reinstall, "a session reaches the services of this machine on its loopback address")
	}
	if r.Unix == "" && v.s.OS == "linux" {
		v.find("unix-socket-open", audit.Error, "AF_UNIX", reinstall, "a session can open Unix sockets, through which programs outside of the sandbox take orders")
	}
	if r.Temp != "" {
		v.find("temp-dir", audit.Error, r.TempDir, "export TMPDIR=/tmp && "+again, "a session cannot make a file in its temporary directory %s: %s", r.TempDir, r.Temp)
	}
	if !r.Agentbox {
		v.find("agentbox", audit.Error, "AGENTBOX", reinstall, "AGENTBOX is not set in a session, so one can be started in another")
	}
	v.report.Tried = len(v.reads) + len(v.writes) + len(v.hosts) + 5
}

// because is why the sandbox did what it did, where the model saw it coming.
func because(v access.Verdict, did bool) string {
	if v.Allowed == did {
		return v.Reason
	}
	return "this srt does not do what its settings say"
}

// told tells whether a finding of an error at or above p is there already.
func (v *verifier) told(p string) bool {
	return slices.ContainsFunc(v.report.Findings, func(f audit.Finding) bool {
		return f.Severity == audit.Error && f.Subject == paths.Tilde(v.set.Home, p)
	})
}

func (v *verifier) name(rule string, e origin.Value) string {
	return fmt.Sprintf("%s %q (%s)", rule[strings.LastIndexByte(rule, '.')+1:], paths.Tilde(v.set.Home, e.Text), e.Origin)
}

// reached tells whether a write inside got to the host: to the same file, or
// to one that is there now.
func (v *verifier) reached(p string, r writeResult) bool {
	if r.Error != "" && r.ID != "" {
		return false
	}
	if r.ID != "" {
		info, err := os.Stat(p)
		return err == nil && identity(info) == r.ID
	}
	return v.made(filepath.Join(p, v.token)) || v.made(p)
}

// made tells whether the probe made p.
func (v *verifier) made(p string) bool {
	info, err := os.Lstat(p)
	if err != nil || !info.Mode().IsRegular() || info.Size() > int64(len(v.token)+1) {
		return false
	}
	f, err := os.Open(p)
	if err != nil {
		return false
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return err == nil && strings.TrimSuffix(string(data), "\n") == v.token
}

// clean removes what the probe made.
func (v *verifier) clean() {
	for _, w := range v.writes {
		for _, p := range []string{w.path, filepath.Join(w.path, v.token), filepath.Join(w.path, v.token+"-1"), filepath.Join(w.path, v.token+"-2")} {
			if v.made(p) {
				os.Remove(p)
			}
		}
	}
}
