package check

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/scope"
)

// effect is what programs do outside the workspace though no argument names a
// place there.
type effect struct {
	programs string // their names
	verbs    string // first operands that do it, "+" for a space; empty: any arguments do
	flags    string // flags of which one must be there
	unless   string // flags and operands with which it is not done, or is done where they say
	vars     string // variables of the environment that say where, too
	what     string
}

// effects are violations.
var effects = []effect{
	{programs: "apt-get apt aptitude dnf yum zypper apk snap flatpak port brew", verbs: "install reinstall remove purge update upgrade full-upgrade dist-upgrade autoremove add del tap uninstall", unless: "-s --simulate --dry-run -d --download-only", what: "changes the system's packages"},
	{programs: "dpkg", flags: "-i --install -r --remove -P --purge --configure", what: "changes the system's packages"},
	{programs: "rpm", flags: "-i -U -e -ivh -Uvh --install --upgrade --erase", what: "changes the system's packages"},
	{programs: "pacman", flags: "-S -Sy -Syu -Syyu -R -Rs -Rns -U", what: "changes the system's packages"},
	{programs: "crontab", unless: "-l", what: "changes what the system runs at its times"},
	{programs: "at batch", unless: "-l -q", what: "changes what the system runs at its times"},
	{programs: "systemctl", verbs: "start stop restart reload enable disable mask unmask edit daemon-reload kill set-default isolate reboot poweroff link", what: "changes the system's services"},
	{programs: "service", unless: "--status-all status", what: "changes the system's services"},
	{programs: "launchctl", verbs: "load unload bootstrap bootout submit start stop enable disable kickstart remove setenv", what: "changes the system's services"},
	{programs: "useradd usermod userdel adduser deluser groupadd groupmod groupdel passwd chsh chfn visudo modprobe insmod rmmod iptables ip6tables nft ufw reboot shutdown poweroff halt hostnamectl timedatectl localectl update-alternatives update-ca-certificates dpkg-reconfigure swapon swapoff", unless: "--list --display --help --version", what: "changes the system"},
	{programs: "sysctl", flags: "-w --write -p --load --system", what: "changes the system"},
	{programs: "ldconfig", unless: "-p -v -n -N --print-cache", what: "changes the system"},

	{programs: "npm pnpm", verbs: "install i in add ci update up uninstall remove rm un r link ln", flags: "-g --global --location=global", unless: "--prefix --dir", vars: "npm_config_prefix NPM_CONFIG_PREFIX PNPM_HOME", what: "changes the global packages"},
	{programs: "yarn", verbs: "global+add global+remove global+upgrade", unless: "--prefix --global-folder", vars: "PREFIX", what: "changes the global packages"},
	{programs: "npm pnpm", verbs: "config+set config+delete config+edit config+fix set c+set login logout adduser", unless: "--location=project --userconfig -L", vars: "npm_config_userconfig NPM_CONFIG_USERCONFIG", what: "changes ~/.npmrc"},
	{programs: "git", verbs: "lfs+install lfs+uninstall", unless: "--local --worktree --file", vars: "GIT_CONFIG_GLOBAL", what: "changes ~/.gitconfig"},
	{programs: "gh", verbs: "auth+login auth+logout auth+refresh auth+setup-git config+set extension+install", vars: "GH_CONFIG_DIR", what: "changes the settings in home"},
	{programs: "aws gcloud", verbs: "configure sso auth+login init", what: "changes the settings in home"},
	{programs: "gpg gpg2", flags: "--import --gen-key --generate-key --full-gen-key --full-generate-key --quick-gen-key --quick-generate-key --delete-key --delete-keys --delete-secret-keys --recv-keys --edit-key", unless: "--homedir", vars: "GNUPGHOME", what: "changes ~/.gnupg"},
	{programs: "ssh-copy-id", what: "changes another host's keys with credentials that cannot be read here"},

	{programs: "pip", verbs: "config+set config+unset config+edit", vars: "PIP_CONFIG_FILE", what: "changes pip's settings"},
	{programs: "pipx", verbs: "install inject upgrade upgrade-all reinstall reinstall-all uninstall ensurepath", vars: "PIPX_HOME", what: "changes the programs in home"},
	{programs: "uv", verbs: "tool+install tool+upgrade tool+uninstall python+install python+uninstall python+pin self+update", vars: "UV_TOOL_DIR UV_PYTHON_INSTALL_DIR", what: "changes the programs in home"},
	{programs: "uv", verbs: "pip+install pip+uninstall pip+sync", flags: "--system --break-system-packages", unless: "--target --prefix", what: "changes the packages of the system's Python"},
	{programs: "conda mamba micromamba", verbs: "install update remove uninstall create env+create env+update init", unless: "-p --prefix", vars: "CONDA_PREFIX MAMBA_ROOT_PREFIX", what: "changes conda's environments"},
	{programs: "gem", verbs: "install uninstall update", unless: "-i --install-dir", vars: "GEM_HOME", what: "changes the gems of the system or of home"},
	{programs: "go", verbs: "install", vars: "GOBIN", what: "writes the programs of GOPATH; GOBIN=$PWD/bin keeps them here"},
	{programs: "go", verbs: "env", flags: "-w -u", vars: "GOENV", what: "changes Go's settings"},
	{programs: "cargo", verbs: "install uninstall", unless: "--root --list", vars: "CARGO_INSTALL_ROOT", what: "changes the programs in ~/.cargo/bin; --root keeps them here"},
	{programs: "cargo", verbs: "login logout", what: "changes cargo's credentials"},
	{programs: "rustup", verbs: "update upgrade install uninstall default set self toolchain+install toolchain+uninstall toolchain+link target+add target+remove component+add component+remove override+set override+unset", vars: "RUSTUP_HOME", what: "changes ~/.rustup"},
	{programs: "nvm fnm volta asdf mise sdk", verbs: "install use+--global global uninstall upgrade pin", what: "changes the toolchains in home"},
	{programs: "code codium subl", flags: "--install-extension --uninstall-extension", what: "changes the extensions in home"},
}

// reaches are notes: whether they leave the scope is known when they run.
var reaches = []effect{
	{programs: "docker podman nerdctl", unless: "--version --help", vars: "DOCKER_HOST CONTAINER_HOST", what: "asks a server outside, which cannot be reached by its UNIX socket"},
	{programs: "sudo doas su pkexec", unless: "-h --help -V --version", what: "becomes another user, which the sandbox lets nobody do"},
	{programs: "tmux screen emacsclient ssh-agent ssh-add gpg-agent", unless: "-V --version", what: "needs a UNIX socket, which cannot be had here"},
	{programs: "osascript open xdg-open systemd-run dbus-send gdbus notify-send", what: "asks a program outside to act"},
	{programs: "make gmake ninja meson", verbs: "install install-strip uninstall", what: "writes where the project was configured to"},
	{programs: "cmake", flags: "--install", unless: "--prefix", what: "writes where the project was configured to"},
	{programs: "bundle bundler", verbs: "install update", unless: "--path", vars: "BUNDLE_PATH GEM_HOME", what: "writes where Bundler was configured to"},
}

// installs are the verbs of pip that change what is installed.
var installs = []string{"install", "uninstall", "sync"}

// match reports whether a program does with its arguments what e says.
func (e effect) match(c *checker, st *state, name string, args []field) bool {
	if !hasWord(e.programs, name) {
		return false
	}
	given := func(list string) bool {
		return list != "" && slices.ContainsFunc(args, func(f field) bool {
			flag, _, _ := strings.Cut(f.text, "=")
			return hasWord(list, f.text) || strings.HasPrefix(flag, "-") && hasWord(list, flag)
		})
	}
	if given(e.unless) || e.flags != "" && !given(e.flags) {
		return false
	}
	for v := range strings.FieldsSeq(e.vars) {
		if value, _ := c.lookup(st, v); value.text != "" || slices.Contains(c.given, v) {
			return false // it was checked where it was set, and is the user's choice elsewhere
		}
	}
	if e.verbs == "" {
		return true
	}
	ops := positional(args)
	verb := func(ops []field) bool {
		return len(ops) > 0 && hasWord(e.verbs, ops[0].text) || len(ops) > 1 && hasWord(e.verbs, ops[0].text+"+"+ops[1].text)
	}
	return verb(ops) || len(ops) > 1 && strings.HasPrefix(args[0].text, "-") && verb(ops[1:]) // a flag's value comes first
}

func hasWord(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

// outside checks what a program does by itself.
func (c *checker) outside(st *state, name string, program field, args []field) {
	for _, e := range effects {
		if e.match(c, st, name, args) {
			c.violation(program.pos, doing(program, args), e.what)
			break
		}
	}
	for _, e := range reaches {
		if e.match(c, st, name, args) && !c.placed(args) {
			c.unknown(program.pos, doing(program, args), e.what)
			break
		}
	}
	if slices.ContainsFunc(args, func(f field) bool { return strings.HasPrefix(f.text, "--prefix=") }) {
		c.prefixed = true
	}
	switch name {
	case "git":
		c.gitConfig(st, program, args)
	case "pip":
		c.pip(st, program, program, args)
	case "python":
		switch ops := positional(args); {
		case len(args) > 1 && args[0].text == "-m" && args[1].text == "pip":
			c.pip(st, program, args[1], args[2:])
		case len(ops) > 1 && ops[0].text == "setup.py" && hasWord("install develop", ops[1].text):
			c.pip(st, program, ops[0], append([]field{{text: "install", pos: ops[1].pos}}, args...))
		}
	}
}

// doing is a program and its first operand, as what was found.
func doing(program field, args []field) string {
	text := program.text
	if ops := positional(args); len(ops) > 0 && !rooted(ops[0].text) {
		text += " " + ops[0].text
	}
	return text
}

// placed reports whether an installation was told where to write: now, or when
// the project was configured by the same command.
func (c *checker) placed(args []field) bool {
	return c.prefixed || slices.ContainsFunc(args, func(f field) bool {
		name, _, ok := strings.Cut(f.text, "=")
		return ok && hasWord("DESTDIR PREFIX prefix INSTALL_ROOT CMAKE_INSTALL_PREFIX", name)
	})
}

// gitConfig checks git config, which without a value only reads.
func (c *checker) gitConfig(st *state, program field, args []field) {
	ops := positional(args)
	if len(ops) == 0 || ops[0].text != "config" {
		return
	}
	global := slices.ContainsFunc(args, func(f field) bool { return hasWord("--global --system", f.text) })
	if v, _ := c.lookup(st, "GIT_CONFIG_GLOBAL"); !global || v.text != "" || slices.Contains(c.given, "GIT_CONFIG_GLOBAL") {
		return
	}
	reads := len(ops) == 2 || len(ops) == 1
	for _, a := range args {
		switch {
		case hasWord("--get --get-all --get-regexp --get-urlmatch --list -l --get-color", a.text):
			return
		case hasWord("--unset --unset-all --edit -e --remove-section --rename-section", a.text):
			reads = false
		}
	}
	if len(ops) > 1 && hasWord("get list", ops[1].text) || reads && (len(ops) < 2 || !hasWord("edit set unset", ops[1].text)) {
		return
	}
	c.violation(program.pos, "git config", "changes ~/.gitconfig or the system's; without --global it changes the repository's")
}

// pip checks an installation of Python packages, which outside a virtual
// environment goes to the system's or to home.
func (c *checker) pip(st *state, program, verb field, args []field) {
	ops := positional(args)
	if len(ops) == 0 || !slices.Contains(installs, ops[0].text) {
		return
	}
	for _, a := range args {
		flag, _, _ := strings.Cut(a.text, "=")
		if hasWord("-t --target --prefix --root --dry-run --python --home --install-dir", flag) {
			return
		}
	}
	const what = "changes Python's packages outside the workspace"
	switch told := slices.ContainsFunc(args, func(f field) bool { return hasWord("--user --break-system-packages", f.text) }); {
	case told, c.asRoot, inSystemBin(program.text):
		c.violation(verb.pos, verb.text+" "+ops[0].text, what+"; python3 -m venv .venv makes a place here")
	case !c.inVenv(st, program):
		c.unknown(verb.pos, verb.text+" "+ops[0].text, what+" where no virtual environment is active")
	}
}

// inVenv reports whether a Python program belongs to a virtual environment
// that the command may write, or to one that is not known.
func (c *checker) inVenv(st *state, program field) bool {
	if strings.Contains(program.text, "/") {
		return true // its path was checked
	}
	if _, ok := st.vars["PATH"]; ok || slices.Contains(c.given, "PATH") || slices.Contains(c.given, "VIRTUAL_ENV") {
		return true
	}
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if v, _ := c.lookup(st, name); v.text != "" {
			return strings.ContainsAny(v.text, unknownRunes) || !filepath.IsAbs(v.text) || c.judge(strings.ReplaceAll(v.text, string(runeTilde), "~")) == ""
		}
	}
	file, err := scope.Lookup(c.sys, c.scope.Dir, program.text)
	return err == nil && c.judge(file) == ""
}

// activate notes the virtual environment that a sourced script activates.
func (c *checker) activate(st *state, args []field) {
	if ops := positional(args); len(ops) > 0 && filepath.Base(ops[0].text) == "activate" {
		st.set("VIRTUAL_ENV", value{text: filepath.Dir(filepath.Dir(ops[0].text))})
	}
}

// languages are programs and the flags that give them a text to run.
var languages = map[string]string{
	"python": "-c", "node": "-e -p -pe --eval --print", "bun": "-e --eval", "deno": "eval", "ruby": "-e", "php": "-r", "lua": "-e",
	"Rscript": "-e", "R": "-e", "julia": "-e -E", "guile": "-c", "emacs": "--eval", "perl": "-e -E",
}

// code notes a text in another language, of which nothing is known. What perl
// and ruby do line by line, as sed does, is left alone.
func (c *checker) code(name string, program field, args []field, inv invocation) {
	flags, ok := languages[name]
	if !ok {
		return
	}
	const unseen = "runs code that is not looked into"
	for _, a := range args {
		if hasWord("perl ruby", name) && strings.HasPrefix(a.text, "-") && strings.IndexAny(strings.TrimLeft(a.text, "-lw0is"), "anp") == 0 {
			return
		}
		cluster := name != "node" && short(a.text, flags[1]) && a.text[len(a.text)-1] == flags[1]
		if hasWord(flags, a.text) || cluster {
			c.unknown(program.pos, program.text+" "+a.text, unseen)
			return
		}
		if !strings.HasPrefix(a.text, "-") {
			return // a file, and its arguments
		}
	}
	switch {
	case inv.input.given:
		c.unknown(program.pos, program.text, unseen)
	case inv.input.piped:
		c.unknown(program.pos, program.text, "runs what it reads from a pipe")
	}
}

var (
	sedWrites = lazy(`(?:^|[\s;{}/0-9$])w\s+([~./][^\s;}]*)`)
	awkWrites = lazy(`>\s*"([^"]+)"`)
)

// writes notes the files that a script of sed or awk writes.
func (c *checker) writes(st *state, name string, args []field) {
	var files *regexp.Regexp
	switch name {
	case "sed":
		files = sedWrites()
	case "awk":
		files = awkWrites()
	default:
		return
	}
	for _, a := range args {
		for _, m := range files.FindAllStringSubmatch(show(a.text), -1) {
			file := m[1]
			if !filepath.IsAbs(file) && len(st.dirs) == 1 {
				file = filepath.Join(st.dirs[0], file)
			}
			if filepath.IsAbs(file) && c.judge(file) != "" {
				c.unknown(a.pos, m[1], "may be written by a script of "+name+", and "+outside)
			}
		}
	}
}

// vi checks the commands that vi and its like are started with.
func (c *checker) vi(st *state, args []field) {
	for i, a := range args {
		text := a.text
		switch {
		case i > 0 && (args[i-1].text == "--cmd" || short(args[i-1].text, 'c') && strings.HasSuffix(args[i-1].text, "c")):
		case strings.HasPrefix(text, "+"):
			text = text[1:]
		default:
			continue
		}
		for command := range strings.SplitSeq(text, "|") {
			command = strings.TrimLeft(command, ": %")
			if shell, ok := strings.CutPrefix(command, "!"); ok {
				c.nested(st.clone(), field{text: shell, pos: a.pos})
				continue
			}
			words := strings.Fields(command)
			for _, w := range words[min(1, len(words)):] {
				if w = strings.TrimLeft(strings.ReplaceAll(w, string(runeTilde), "~"), ">"); pathLike(w) {
					c.path(field{text: w, pos: a.pos}, w, st.dirs)
				}
			}
		}
	}
}

// su checks the command that su runs.
func (c *checker) su(st *state, args []field) {
	for i, a := range args {
		if hasWord("-c --command", a.text) && i+1 < len(args) {
			c.nested(st.clone(), args[i+1])
		}
	}
}

// alias checks what the names of alias stand for.
func (c *checker) alias(st *state, args []field) {
	for _, a := range args {
		if _, value, ok := strings.Cut(a.text, "="); ok {
			c.nested(st.clone(), field{text: value, pos: a.pos})
		}
	}
}

// exists reports whether text names a file that is there.
func (c *checker) exists(text string) bool {
	_, err := os.Lstat(strings.Replace(text, "~", c.scope.Home, 1))
	return err == nil
}
