package scope

import "encoding/binary"

// Of the kernel's headers linux/seccomp.h, audit.h, filter.h, sched.h and
// socket.h.
const (
	afUnix  = 1
	afVsock = 40 // reaches the machine that a virtual one runs on

	tiocsti   = 0x5412 // puts a character into a terminal's input
	tioclinux = 0x541c // pastes on a virtual console

	cloneNewNS, cloneNewUser = 0x00020000, 0x10000000
	unshareEmptyNS           = 0x00100000

	retAllow  = 0x7fff0000
	retEPERM  = 0x00050001
	retENOSYS = 0x00050026
	retKill   = 0x80000000 // the process

	bpfLoad = 0x20 // BPF_LD | BPF_W | BPF_ABS
	bpfJeq  = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
	bpfJge  = 0x35
	bpfJset = 0x45
	bpfRet  = 0x06 // BPF_RET | BPF_K

	offNr, offArch, offArg0, offArg1 = 0, 4, 16, 24 // in struct seccomp_data, little endian

	x32 = 0x40000000 // marks the calls of another ABI of amd64
)

// machine holds what differs between the machines that the filter knows.
type machine struct {
	audit                         uint32
	socket, ioctl, clone, unshare uint32
	mounts                        []uint32 // pivot_root, mount, umount2, setns
}

var machines = map[string]machine{
	"amd64": {audit: 0xc000003e, socket: 41, ioctl: 16, clone: 56, unshare: 272, mounts: []uint32{155, 165, 166, 308}},
	"arm64": {audit: 0xc00000b7, socket: 198, ioctl: 29, clone: 220, unshare: 97, mounts: []uint32{41, 40, 39, 268}},
}

// On all machines: the newer calls that change mounts (open_tree, move_mount,
// fsopen, fsconfig, fsmount, fspick, mount_setattr, open_tree_attr), and those
// whose arguments a filter cannot see (io_uring_setup, io_uring_enter,
// io_uring_register, clone3), for which every program has an older way.
var (
	newMounts = []uint32{428, 429, 430, 431, 432, 433, 442, 467}
	unseen    = []uint32{425, 426, 427, 435}
)

type insn struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

// filter is a seccomp program, as bubblewrap reads it, for what the file
// system's mounts do not stop. It refuses
//
//   - sockets with which a command could ask a server outside to act for it
//     (tmux, D-Bus, Docker, X11, agents); a pair of connected ones is fine;
//   - the ioctls with which a program types into the terminal that it shares
//     with the caller's shell;
//   - new user and mount namespaces, in which the mounts could be moved aside.
//
// Calls of another ABI, where the numbers mean other calls, end the process.
// ok is false on a machine that the filter does not know.
func filter(arch string) (program []byte, ok bool) {
	m, ok := machines[arch]
	if !ok {
		return nil, false
	}
	prog := []insn{
		{bpfLoad, 0, 0, offArch},
		{bpfJeq, 1, 0, m.audit},
		{bpfRet, 0, 0, retKill},
		{bpfLoad, 0, 0, offNr},
	}
	if arch == "amd64" {
		prog = append(prog, insn{bpfJge, 0, 1, x32}, insn{bpfRet, 0, 0, retKill})
	}
	refuse := func(ret uint32, calls ...uint32) {
		for _, nr := range calls {
			prog = append(prog, insn{bpfJeq, 0, 1, nr}, insn{bpfRet, 0, 0, ret})
		}
	}
	// refuseIf refuses a call where a test of one argument holds.
	refuseIf := func(nr, arg uint32, test uint16, values ...uint32) {
		prog = append(prog, insn{bpfJeq, 0, uint8(len(values) + 3), nr}, insn{bpfLoad, 0, 0, arg})
		for i, v := range values {
			prog = append(prog, insn{test, uint8(len(values) - i), 0, v})
		}
		prog = append(prog, insn{bpfRet, 0, 0, retAllow}, insn{bpfRet, 0, 0, retEPERM})
	}
	refuseIf(m.socket, offArg0, bpfJeq, afUnix, afVsock)
	refuseIf(m.ioctl, offArg1, bpfJeq, tiocsti, tioclinux)
	refuseIf(m.clone, offArg0, bpfJset, cloneNewUser|cloneNewNS)
	refuseIf(m.unshare, offArg0, bpfJset, cloneNewUser|cloneNewNS|unshareEmptyNS)
	refuse(retEPERM, m.mounts...)
	refuse(retEPERM, newMounts...)
	refuse(retENOSYS, unseen...)
	prog = append(prog, insn{bpfRet, 0, 0, retAllow})

	for _, in := range prog {
		program = binary.LittleEndian.AppendUint16(program, in.code)
		program = append(program, in.jt, in.jf)
		program = binary.LittleEndian.AppendUint32(program, in.k)
	}
	return program, true
}
