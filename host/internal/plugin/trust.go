package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/lock"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/sdk"
)

// Lock is the file of trusted plugins. It says what each file was and what it
// answered when the user trusted it.
type Lock struct {
	Version   int               `toml:"version"`
	Sources   map[string]string `toml:"source,omitempty"` // where a plugin was added from, pinned by digest
	Frontends map[string]Entry  `toml:"frontend,omitempty"`
}

// Entry is one trusted plugin.
type Entry struct {
	SHA256 string `toml:"sha256"`

	// What the plugin was told.
	OS   string            `toml:"os"`
	Arch string            `toml:"arch"`
	Home string            `toml:"home"`
	Env  map[string]string `toml:"env,omitempty"`

	// What it answered.
	Command     string   `toml:"command"`
	State       []string `toml:"state"`
	Own         []string `toml:"own,omitempty"`
	DenyWrite   []string `toml:"deny_write,omitempty"`
	Ensure      []string `toml:"ensure,omitempty"`
	Args        []string `toml:"args,omitempty"`
	Overrides   []string `toml:"overrides,omitempty"`
	RefusedArgs []string `toml:"refused_args,omitempty"`
	Settings    string   `toml:"settings_file,omitempty"`
	Variables   []string `toml:"variables,omitempty"` // names of the variables it depends on
}

const lockVersion = 1

// ReadLock reads the file of trusted plugins. Where it is missing, none is
// trusted.
func (h *Host) ReadLock() (*Lock, error) {
	file := layout.Layout{Home: h.Home}.Trust()
	l := &Lock{Version: lockVersion, Sources: map[string]string{}, Frontends: map[string]Entry{}}
	data, err := files.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	dec := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := dec.Decode(l); err != nil {
		line := ""
		if de, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, _ := de.Position()
			line = fmt.Sprintf("line %d", row)
		}
		return nil, problem.New(file, line, "is not a list of trusted plugins: %v", firstLine(err)).
			WithHint("remove the file and trust your plugins again with harness frontend trust NAME")
	}
	if l.Version != lockVersion {
		return nil, problem.New(file, "version", "is %d, and this harness reads %d", l.Version, lockVersion)
	}
	return l, nil
}

// change changes the file of trusted plugins under the lock of the verbs that
// write.
func (h *Host) change(ctx context.Context, do func(*Lock)) error {
	at, disk := layout.Layout{Home: h.Home}, files.Disk{}
	held, err := lock.Acquire(ctx, disk, at)
	if err != nil {
		return err
	}
	defer held.Release()
	l, err := h.ReadLock()
	if err != nil {
		return err
	}
	do(l)
	return disk.Replace(at.Trust(), l.encode(), 0o644)
}

// Record trusts a plugin as it is, for what it answered.
func (h *Host) Record(ctx context.Context, f Frontend) error {
	return h.change(ctx, func(l *Lock) { l.Frontends[f.Name] = NewEntry(f) })
}

// judge says whether f may run.
func (l *Lock) judge(f Found) Trust {
	entry, known := l.Frontends[f.Name]
	switch {
	case f.Bundled:
		return Bundled
	case !known:
		return Untrusted
	case entry.SHA256 != f.Digest:
		return Changed
	}
	return Trusted
}

// encode returns the bytes of the file.
func (l *Lock) encode() []byte {
	var b bytes.Buffer
	b.WriteString("# The frontend plugins that you trust, written by harness frontend trust.\n")
	if err := toml.NewEncoder(&b).Encode(l); err != nil {
		panic(fmt.Sprintf("strings do not encode as TOML: %v", err))
	}
	return b.Bytes()
}

// NewEntry records a plugin and its answer.
func NewEntry(f Frontend) Entry {
	e := Entry{
		SHA256: f.Plugin.Digest, OS: f.Request.OS, Arch: f.Request.Arch, Home: f.Request.Home, Env: f.Request.Env,
		Command: f.Command, Own: f.Own, DenyWrite: f.DenyWrite, Settings: f.SettingsFile, Variables: f.Env,
	}
	for _, p := range f.State {
		e.State = append(e.State, describePath(p))
	}
	for _, p := range f.Ensure {
		e.Ensure = append(e.Ensure, describePath(p))
	}
	for _, a := range f.Args {
		e.Args = append(e.Args, describeArg(a))
	}
	for _, o := range f.Overrides {
		e.Overrides = append(e.Overrides, o.Name+" sha256:"+files.Digest(o.Content))
	}
	for _, r := range f.RefusedArgs {
		e.RefusedArgs = append(e.RefusedArgs, r.Arg)
	}
	return e
}

// describePath spells a path with its kind, and its content by digest.
func describePath(p sdk.Path) string {
	s := p.Path + " " + p.Kind.String()
	if len(p.Content) > 0 {
		s += " sha256:" + files.Digest(p.Content)
	}
	return s
}

// describeArg spells an argument with its condition.
func describeArg(a sdk.Arg) string {
	s := a.Literal
	if a.Override != "" {
		s = "@" + a.Override
	}
	if a.Versions != "" {
		s += " (" + a.Versions + ")"
	}
	return s
}

// Widened returns in words what the answer of f allows beyond what was
// trusted. An answer to other inputs cannot be compared, and the digest alone
// holds.
func (e Entry) Widened(f Frontend) []string {
	n := NewEntry(f)
	if n.OS != e.OS || n.Arch != e.Arch || n.Home != e.Home || !maps.Equal(n.Env, e.Env) {
		return nil
	}
	var out []string
	for _, c := range e.Changes(n) {
		if c.Wider {
			out = append(out, c.String())
		}
	}
	return out
}

// Change is one difference between two answers.
type Change struct {
	Key, Value string
	Added      bool
	Wider      bool // it allows more than before
}

// String is the change in words.
func (c Change) String() string {
	if c.Added {
		return fmt.Sprintf("%s %q is new", c.Key, c.Value)
	}
	return fmt.Sprintf("%s %q is gone", c.Key, c.Value)
}

// Changes returns what n has beyond e and lacks of it.
func (e Entry) Changes(n Entry) []Change {
	var out []Change
	for _, l := range []struct {
		key      string
		old, new []string
		denies   bool // more of it allows less
	}{
		{"command", []string{e.Command}, []string{n.Command}, false},
		{"state", e.State, n.State, false},
		{"own", e.Own, n.Own, false},
		{"deny_write", e.DenyWrite, n.DenyWrite, true},
		{"ensure", e.Ensure, n.Ensure, false},
		{"args", e.Args, n.Args, false},
		{"overrides", e.Overrides, n.Overrides, false},
		{"refused_args", e.RefusedArgs, n.RefusedArgs, true},
		{"settings_file", nonEmpty(e.Settings), nonEmpty(n.Settings), false},
		{"env", e.Variables, n.Variables, false},
	} {
		for _, v := range l.new {
			if !slices.Contains(l.old, v) {
				out = append(out, Change{l.key, v, true, !l.denies})
			}
		}
		for _, v := range l.old {
			if !slices.Contains(l.new, v) {
				out = append(out, Change{l.key, v, false, l.denies})
			}
		}
	}
	return out
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// firstLine is the first line of an error's text.
func firstLine(err error) string {
	for line := range bytes.Lines([]byte(err.Error())) {
		return string(bytes.TrimSpace(line))
	}
	return ""
}
