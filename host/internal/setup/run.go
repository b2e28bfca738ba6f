package setup

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// lookPath returns the absolute path of a program on the user's PATH, or "".
func (p *planner) lookPath(name string) string {
	for _, dir := range filepath.SplitList(p.s.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue // it would name another program from another directory
		}
		if file := filepath.Join(dir, name); executable(file) {
			return file
		}
	}
	return ""
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// run runs a command in dir and returns what it wrote. When ctx ends first,
// the command and all that it started are ended.
func (p *planner) run(ctx context.Context, dir string, argv ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, p.s.Env
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		err = context.Cause(ctx)
	}
	return out.String(), errs.String(), err
}

// ask runs a command that answers at once.
func (p *planner) ask(ctx context.Context, argv ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return p.run(ctx, p.at.Home, argv...)
}

// show runs a program on PATH of which the user sees everything and that may
// ask for a password.
func (p *planner) show(ctx context.Context, argv ...string) error {
	cmd := exec.CommandContext(ctx, p.lookPath(argv[0]), argv[1:]...)
	cmd.Dir = p.at.Home
	cmd.Env = append(slices.Clone(p.s.Env), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.s.Stdin, p.s.Stderr, p.s.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd.Run()
}
