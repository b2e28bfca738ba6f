package plugin

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// memoryImage copies src into memory and seals it.
func memoryImage(src *os.File) (*image, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("frontend", flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("frontend", flags)
	}
	if err != nil {
		return nil, err
	}
	mem := os.NewFile(uintptr(fd), src.Name())
	sum, err := hashCopy(mem, src)
	if err == nil {
		_, err = unix.FcntlInt(mem.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		mem.Close()
		return nil, err
	}
	return &image{digest: sum, path: "/proc/self/fd/3", file: mem}, nil
}

// dieWithHost makes the kernel end the process when the host ends, however it
// ends.
func dieWithHost(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
