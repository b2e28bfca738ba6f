// Package paths compares and spells file names, without looking at the disk
// but for [Real].
package paths

import (
	"os"
	"path/filepath"
	"strings"
)

// Expand replaces "~" and a leading "~/" by home and cleans the path: no
// trailing slash, no empty segment, no ".". Other paths pass through, cleaned
// alike where they are absolute.
func Expand(home, p string) string {
	if p == "~" {
		return home
	}
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return filepath.Clean(home + "/" + rest)
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return p
}

// Tilde spells p for people: "~" and "~/…" for home and what lies below it.
func Tilde(home, p string) string {
	if p == home {
		return "~"
	}
	if rest, ok := strings.CutPrefix(p, home+"/"); ok && home != "" {
		return "~/" + rest
	}
	return p
}

// Shell spells p as a word that a shell reads as p, by "~/" where it lies below
// home.
func Shell(home, p string) string {
	short := Tilde(home, p)
	rest, tilde := strings.CutPrefix(short, "~/")
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+,:@%", r)
	}
	if short == "~" || rest != "" && !strings.ContainsFunc(rest, func(r rune) bool { return !plain(r) }) {
		return short
	}
	quoted := "'" + strings.ReplaceAll(rest, "'", `'\\''`) + "'"
	if tilde {
		return "~/" + quoted
	}
	return quoted
}

// AtOrBelow reports whether p is dir or lies below it, by whole components.
// A trailing "/**" of either counts as its directory.
func AtOrBelow(p, dir string) bool {
	p, dir = TrimGlobstar(p), TrimGlobstar(dir)
	return p == dir || dir == "/" && strings.HasPrefix(p, "/") || strings.HasPrefix(p, dir+"/")
}

// Below reports whether p lies strictly below dir.
func Below(p, dir string) bool {
	return TrimGlobstar(p) != TrimGlobstar(dir) && AtOrBelow(p, dir)
}

// TrimGlobstar drops a trailing "/**", which names the directory before it.
func TrimGlobstar(p string) string {
	for {
		rest, ok := strings.CutSuffix(p, "/**")
		if !ok {
			return p
		}
		if rest == "" {
			return "/"
		}
		p = rest
	}
}

// IsGlob reports whether p holds a glob character once a trailing "/**" is
// gone.
func IsGlob(p string) bool { return strings.ContainsAny(TrimGlobstar(p), "*?[") }

// Real resolves the symbolic links of an absolute path as far as it exists
// and appends the rest. A dangling link is followed to where it points.
func Real(p string) string {
	return real(filepath.Clean(p), 40)
}

func real(p string, hops int) string {
	if r, err := filepath.EvalSymlinks(p); err == nil {
		return r
	}
	if p == "/" || hops == 0 {
		return p
	}
	dir, base := filepath.Split(p)
	parent := real(filepath.Clean(dir), hops)
	p = filepath.Join(parent, base)
	if target, err := os.Readlink(p); err == nil {
		if !filepath.IsAbs(target) {
			target = filepath.Join(parent, target)
		}
		return real(filepath.Clean(target), hops-1)
	}
	return p
}
