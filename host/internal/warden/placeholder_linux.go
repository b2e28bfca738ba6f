package warden

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// placeholder is an empty file on which the sandbox mounted /dev/null, to
// keep the session from creating a file there. bubblewrap makes it on the
// host, and only a live runtime removes it.
type placeholder struct {
	path string
	file identity
}

// identity tells a file from any other that later has its name, or its inode.
type identity struct {
	major, minor uint32
	inode        uint64
	born         unix.StatxTimestamp
}

// placeholders returns those that the session of pid made since started. The
// session's own mounts tell where they are.
func placeholders(pid int, started time.Time) []placeholder {
	var out []placeholder
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	for line := range strings.Lines(string(data)) {
		// ID, parent ID, device, root of the mount, mount point, …
		f := strings.Fields(line)
		if len(f) < 5 || f[3] != "/null" {
			continue
		}
		path := unescape(f[4])
		if file, ok := identify(path); ok && !time.Unix(file.born.Sec, int64(file.born.Nsec)).Before(started) {
			out = append(out, placeholder{path, file})
		}
	}
	return out
}

// identify returns the identity of path where it looks like a placeholder: an
// empty regular file of this user that nobody may write.
func identify(path string) (identity, bool) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	if err != nil || st.Mode != unix.S_IFREG|0o444 || st.Size != 0 || int(st.Uid) != os.Geteuid() || st.Nlink != 1 {
		return identity{}, false
	}
	born := st.Btime
	if st.Mask&unix.STATX_BTIME == 0 {
		born = st.Ctime // which nothing changes as long as it is a placeholder
	}
	return identity{st.Dev_major, st.Dev_minor, st.Ino, born}, true
}

// remove removes the placeholders that are still there, except where another
// sandbox has mounted something on one: it would lose its protection. Such a
// sandbox gets a moment to end, because a closed terminal ends them together.
func remove(ps []placeholder) {
	for tries := range 25 {
		if tries > 0 {
			time.Sleep(200 * time.Millisecond)
		}
		var left []placeholder
		for _, p := range ps {
			if file, ok := identify(p.path); ok && file == p.file {
				left = append(left, p)
			}
		}
		if len(left) == 0 {
			return
		}
		used := MountPoints()
		ps = nil
		for _, p := range left {
			if used[p.path] {
				ps = append(ps, p)
				continue
			}
			_ = os.Remove(p.path)
		}
		if len(ps) == 0 {
			return
		}
	}
}

// MountPoints returns where anything is mounted in the view of any process.
func MountPoints() map[string]bool {
	points := map[string]bool{}
	seen := map[string]bool{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		data, _ := os.ReadFile("/proc/" + e.Name() + "/mountinfo")
		if text := string(data); !seen[text] {
			seen[text] = true
			for line := range strings.Lines(text) {
				if f := strings.Fields(line); len(f) > 4 {
					points[unescape(f[4])] = true
				}
			}
		}
	}
	return points
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
