package plugin

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/problem"
)

// Read returns the content of the plugin at path, which the user named.
func (h *Host) Read(path string) (Found, []byte, error) {
	f, err := h.At(path)
	if err != nil {
		return Found{}, nil, err
	}
	src, err := open(f.File)
	if err != nil {
		return Found{}, nil, err
	}
	defer src.Close()
	data, err := io.ReadAll(src)
	if err != nil {
		return Found{}, nil, problem.New(f.File, "", "%w", cause(err))
	}
	f.Digest = files.Digest(data)
	return f, data, nil
}

// Add puts a plugin into the directory of plugins, the first that the user
// named or else the host's own. A file of this name there is replaced, whole
// or not at all. Nothing is executed and nothing is trusted. Source says
// where the plugin came from, pinned by a digest, or is empty.
func (h *Host) Add(ctx context.Context, fileName, source string, data []byte) (Found, error) {
	m := pluginName.FindStringSubmatch(fileName)
	if m == nil {
		return Found{}, problem.New(fileName, "", "is not the name of a plugin, %s<name>", prefix)
	}
	name := m[1]
	if _, ok := h.Bundled[name]; ok {
		return Found{}, problem.New(fileName, "", "%s is bundled with this harness", name).
			WithHint("give the frontend another name")
	}
	found, err := h.discover()
	if err != nil {
		return Found{}, err
	}
	dir := h.Dir()
	if len(h.Dirs) > 0 {
		dir = h.System.Abs(h.Dirs[0])
	}
	target := filepath.Join(dir, fileName)
	for _, f := range found {
		if f.Name == name && f.File != target {
			return Found{}, problem.New(f.File, "", "is a plugin of this name already").
				WithHint("harness frontend remove %s", name)
		}
	}
	if info, err := os.Lstat(target); err == nil && !info.Mode().IsRegular() {
		return Found{}, problem.New(target, "", "is in the way and is not a regular file").WithHint("remove it")
	}
	disk := files.Disk{}
	if err := disk.CreateDir(dir, 0o755); err != nil {
		return Found{}, err
	}
	if err := disk.Replace(target, data, 0o755); err != nil {
		return Found{}, err
	}
	err = h.change(ctx, func(l *Lock) {
		if source == "" {
			delete(l.Sources, name)
		} else {
			l.Sources[name] = source
		}
	})
	return Found{Name: name, File: target, Digest: files.Digest(data)}, err
}

// Find returns the plugin of a name. It is not executed.
func (h *Host) Find(name string) (Found, error) {
	found, err := h.discover()
	if err != nil {
		return Found{}, err
	}
	i := slices.IndexFunc(found, func(f Found) bool { return f.Name == name })
	if i < 0 {
		var all []Status
		for _, f := range found {
			all = append(all, Status{Plugin: f})
		}
		return Found{}, h.missing(name, all)
	}
	return h.At(found[i].File)
}

// Remove removes a plugin's file and the trust in it.
func (h *Host) Remove(ctx context.Context, name string) error {
	if _, ok := h.Bundled[name]; ok {
		return problem.New("", name, "is bundled with this harness").
			WithHint("choose frontends in the profile: [setup] frontends")
	}
	l, err := h.ReadLock()
	if err != nil {
		return err
	}
	f, err := h.Find(name)
	if _, known := l.Frontends[name]; err != nil && !known {
		return err
	}
	if err == nil {
		if err := (files.Disk{}).Remove(f.File); err != nil {
			return err
		}
	}
	return h.change(ctx, func(l *Lock) {
		delete(l.Sources, name)
		delete(l.Frontends, name)
	})
}
