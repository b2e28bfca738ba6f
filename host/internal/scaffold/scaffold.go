// Package scaffold writes the source of a new frontend plugin.
package scaffold

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/sdk"
	frontendv1 "github.com/research-harness/harness/sdk/proto/frontend/v1"
)

// Options say what is written.
type Options struct {
	Name string // the policy name
	Dir  string // the directory, which must not exist; harness-frontend-NAME where empty
	Lang string // "go" or "python"
	SDK  string // a directory of the SDK in place of a released version, or empty
}

//go:embed all:templates
var templates embed.FS

var plainName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// New writes the source of a plugin and returns its directory. It is written
// whole or not at all.
func New(ctx context.Context, s *system.System, o Options) (string, error) {
	switch {
	case !plainName.MatchString(o.Name):
		return "", problem.New("", "NAME", "%q is not a plain name", o.Name).
			WithHint("use a lower-case letter, then lower-case letters, digits and hyphens")
	case o.Lang != "go" && o.Lang != "python":
		return "", problem.New("", "--lang", "%q is not a language that is known", o.Lang).WithHint("use go or python")
	}
	if o.Dir == "" {
		o.Dir = "harness-frontend-" + o.Name
	}
	dir := s.Abs(o.Dir)
	if _, err := os.Lstat(dir); err == nil {
		return "", problem.New(dir, "", "exists already").WithHint("name another directory with --dir")
	}
	if o.SDK != "" {
		o.SDK = s.Abs(o.SDK)
		if _, err := os.Stat(filepath.Join(o.SDK, "go.mod")); err != nil {
			return "", problem.New(o.SDK, "--sdk", "is not the directory of the SDK: it has no go.mod")
		}
	}

	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", failed(filepath.Dir(dir), err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".harness-new-")
	if err != nil {
		return "", failed(filepath.Dir(dir), err)
	}
	defer os.RemoveAll(tmp)
	if err := write(tmp, o); err != nil {
		return "", err
	}
	if o.Lang == "go" {
		if err := tidy(ctx, s, tmp); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(tmp, 0o755); err != nil { //nolint:gosec // a source directory, like any other
		return "", failed(dir, err)
	}
	return dir, failed(dir, os.Rename(tmp, dir))
}

// write fills dir from the templates.
func write(dir string, o Options) error {
	data := struct{ Name, EnvName, SDK, SDKVersion string }{
		Name:    o.Name,
		EnvName: strings.ToUpper(strings.ReplaceAll(o.Name, "-", "_")),
		SDK:     o.SDK, SDKVersion: sdk.Version,
	}
	if o.SDK != "" {
		data.SDKVersion = "0.0.0"
	}
	root := "templates/" + o.Lang
	err := fs.WalkDir(templates, root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		tmpl, err := template.ParseFS(templates, path)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := tmpl.Execute(&b, data); err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, root+"/"), ".tmpl")
		return put(filepath.Join(dir, name), b.Bytes())
	})
	if err == nil && o.Lang == "python" {
		err = put(filepath.Join(dir, "frontend.proto"), frontendv1.Source)
	}
	return failed(dir, err)
}

func put(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// tidy has Go complete the module's requirements.
func tidy(ctx context.Context, s *system.System, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "mod", "tidy")
	cmd.Dir = dir
	cmd.Env = append(slices.Clone(s.Env), "GOWORK=off", "PWD="+dir)
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return problem.New("", "go", "is not installed").WithHint("install Go from https://go.dev/dl, or use --lang python")
	case err != nil:
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return problem.New("go mod tidy", "", "%s", lines[len(lines)-1]).WithHint("where the SDK's release is out of reach, name that of a clone of the harness: --sdk CLONE/sdk")
	}
	return nil
}

func failed(path string, err error) error {
	if err == nil {
		return nil
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return problem.New(pe.Path, "", "%w", pe.Err)
	}
	return problem.New(path, "", "%w", err)
}
