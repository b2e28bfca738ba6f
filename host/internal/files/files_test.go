package files

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(at("file"), []byte("x"), 0o600))
	must(os.Symlink("file", at("link")))
	must(os.Symlink("gone", at("dangling")))
	must(os.Symlink("loop", at("loop")))
	must(os.Mkdir(at("dir"), 0o700))
	must(syscall.Mkfifo(at("fifo"), 0o600))
	socket, err := net.Listen("unix", at("socket"))
	must(err)
	defer socket.Close()
	must(os.WriteFile(at("huge"), nil, 0o600))
	must(os.Truncate(at("huge"), 1<<40))
	must(os.WriteFile(at("program"), nil, 0o600))
	must(os.Truncate(at("program"), maxText+1))
	must(os.WriteFile(at("largest"), nil, 0o600))
	must(os.Truncate(at("largest"), maxText))

	for _, tt := range []struct{ rule, path, want string }{
		{"a file", at("file"), ""},
		{"a link to a file", at("link"), ""},
		{"a file of the largest size", at("largest"), ""},
		{"a file of the kernel's, which says it is empty", "/proc/self/status", ""},
		{"nothing", at("gone"), "no such file or directory"},
		{"a link to nothing", at("dangling"), "no such file or directory"},
		{"a link to itself", at("loop"), "too many levels of symbolic links"},
		{"below a file", at("file/x"), "not a directory"},
		{"a directory", at("dir"), "is a directory"},
		{"a FIFO that nobody writes", at("fifo"), "is not a regular file"},
		{"a socket", at("socket"), "is not a regular file"},
		{"a device without an end", "/dev/zero", "is not a regular file"},
		{"a terminal", "/dev/tty", "is not a regular file"},
		{"a file without an end", at("huge"), "is larger than 4 MiB"},
		{"a file of a program's size", at("program"), "is larger than 4 MiB"},
	} {
		if _, err := os.Stat("/proc/self"); err != nil && strings.HasPrefix(tt.path, "/proc/") {
			continue // not on this system
		}
		data, err := Read(tt.path)
		switch {
		case tt.want != "" && (err == nil || err.Error() != tt.path+": "+tt.want):
			t.Errorf("%s: %v, want %s", tt.rule, err, tt.want)
		case tt.want == "" && (err != nil || len(data) == 0):
			t.Errorf("%s: %d bytes, %v", tt.rule, len(data), err)
		}
	}
	if _, err := Read(at("dangling")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there does not match fs.ErrNotExist: %v", err)
	}
	if data, err := ReadProgram(at("program")); err != nil || len(data) != maxText+1 {
		t.Errorf("a program: %d bytes, %v", len(data), err)
	}
	if _, err := ReadProgram(at("huge")); err == nil || !strings.HasSuffix(err.Error(), "is larger than 256 MiB") {
		t.Errorf("a program without an end: %v", err)
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".a.json123", ".a.json", "a.json", "a.json5", ".b.json123", ".a.json123x"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".a.json9"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (Disk{}).Sweep([]string{filepath.Join(dir, "a.json"), filepath.Join(dir, "gone/a.json")}); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got, want := strings.Join(left, " "), ".a.json .a.json123x .a.json9 .b.json123 a.json a.json5"; got != want {
		t.Errorf("left %s, want %s", got, want)
	}
}

func TestRemoveDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "used/by"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		removed bool
		want    error
	}{
		{"used", false, nil}, {"used/by", true, nil}, {"used", true, nil}, {"used", false, nil}, {"file", false, syscall.ENOTDIR},
	} {
		removed, err := Disk{}.RemoveDir(filepath.Join(dir, tt.name))
		if removed != tt.removed || !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, %v", tt.name, removed, err)
		}
	}
}
