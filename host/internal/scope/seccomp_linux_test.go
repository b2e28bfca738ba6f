package scope

import (
	"encoding/binary"
	"testing"
)

// run is the kernel's part: it says what a filter returns for a call.
func runFilter(t *testing.T, program []byte, audit, nr uint32, args ...uint64) uint32 {
	t.Helper()
	data := binary.LittleEndian.AppendUint32(nil, nr)
	data = binary.LittleEndian.AppendUint32(data, audit)
	data = append(data, make([]byte, 8)...) // the instruction pointer
	for i := range 6 {
		var arg uint64
		if i < len(args) {
			arg = args[i]
		}
		data = binary.LittleEndian.AppendUint64(data, arg)
	}
	var acc uint32
	for pc := 0; ; pc++ {
		in := program[8*pc : 8*pc+8]
		jt, jf, k := int(in[2]), int(in[3]), binary.LittleEndian.Uint32(in[4:])
		var hit bool
		switch code := binary.LittleEndian.Uint16(in); code {
		case bpfLoad:
			acc = binary.LittleEndian.Uint32(data[k:])
			continue
		case bpfRet:
			return k
		case bpfJeq:
			hit = acc == k
		case bpfJge:
			hit = acc >= k
		case bpfJset:
			hit = acc&k != 0
		default:
			t.Fatalf("instruction %d has the code %#x", pc, code)
		}
		if hit {
			pc += jt
		} else {
			pc += jf
		}
	}
}

func TestFilter(t *testing.T) {
	const high = 1 << 32 // bits of a register that the kernel does not look at
	for _, m := range []struct {
		arch                                                       string
		audit, otherAudit                                          uint32
		getpid, socket, socketpair, connect, ioctl, clone, unshare uint32
		mount, umount2, pivotRoot, setns                           uint32
		x32                                                        uint32 // what a call with that bit gives
	}{
		{
			arch: "amd64", audit: 0xc000003e, otherAudit: 0x40000003, getpid: 39, socket: 41, socketpair: 53, connect: 42, ioctl: 16,
			clone: 56, unshare: 272, mount: 165, umount2: 166, pivotRoot: 155, setns: 308, x32: retKill,
		},
		{
			arch: "arm64", audit: 0xc00000b7, otherAudit: 0x40000028, getpid: 172, socket: 198, socketpair: 199, connect: 203, ioctl: 29,
			clone: 220, unshare: 97, mount: 40, umount2: 39, pivotRoot: 41, setns: 268, x32: retAllow, // no such call there
		},
	} {
		program, ok := filter(m.arch)
		if !ok {
			t.Fatalf("no filter for %s", m.arch)
		}
		for _, tt := range []struct {
			rule string
			nr   uint32
			args []uint64
			want uint32
		}{
			{"an ordinary call", m.getpid, nil, retAllow},
			{"a socket of the network", m.socket, []uint64{2, 1}, retAllow},
			{"and of IPv6", m.socket, []uint64{10, 1}, retAllow},
			{"and of the kernel", m.socket, []uint64{16, 3}, retAllow},
			{"a UNIX socket", m.socket, []uint64{1, 1}, retEPERM},
			{"one with high bits", m.socket, []uint64{high | 1, 1}, retEPERM},
			{"a socket to the virtual machine's host", m.socket, []uint64{40, 1}, retEPERM},
			{"a pair of UNIX sockets", m.socketpair, []uint64{1, 1}, retAllow},
			{"a connection by a socket that is there", m.connect, []uint64{1}, retAllow},
			{"asking for a window's size", m.ioctl, []uint64{0, 0x5413}, retAllow},
			{"typing into the terminal", m.ioctl, []uint64{0, 0x5412}, retEPERM},
			{"the same with high bits", m.ioctl, []uint64{0, high | 0x5412}, retEPERM},
			{"pasting on a console", m.ioctl, []uint64{0, 0x541c}, retEPERM},
			{"a fork", m.clone, []uint64{17}, retAllow},
			{"a thread", m.clone, []uint64{0x3d0f00}, retAllow},
			{"a user namespace", m.clone, []uint64{0x10000011}, retEPERM},
			{"a mount namespace", m.clone, []uint64{0x20011}, retEPERM},
			{"a network namespace alone", m.unshare, []uint64{0x40000000}, retAllow},
			{"unshare of the user namespace", m.unshare, []uint64{0x10000000}, retEPERM},
			{"unshare of the mounts", m.unshare, []uint64{0x20000}, retEPERM},
			{"mount", m.mount, nil, retEPERM},
			{"umount", m.umount2, nil, retEPERM},
			{"pivot_root", m.pivotRoot, nil, retEPERM},
			{"entering another namespace", m.setns, nil, retEPERM},
			{"a detached copy of a mount", 428, nil, retEPERM},
			{"a mount's attributes", 442, nil, retEPERM},
			{"clone3, which has an older way", 435, nil, retENOSYS},
			{"io_uring, which could make sockets", 425, nil, retENOSYS},
			{"a call of another ABI", x32 | m.socket, []uint64{1, 1}, m.x32},
		} {
			if got := runFilter(t, program, m.audit, tt.nr, tt.args...); got != tt.want {
				t.Errorf("%s: %s: %#x, want %#x", m.arch, tt.rule, got, tt.want)
			}
		}
		if got := runFilter(t, program, m.otherAudit, m.getpid); got != retKill {
			t.Errorf("%s: a call of a 32-bit program: %#x, want %#x", m.arch, got, uint32(retKill))
		}
	}
	if _, ok := filter("riscv64"); ok {
		t.Error("the filter claims to know riscv64")
	}
}
