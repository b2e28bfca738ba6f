package scope

import "encoding/binary"

// Of package linux/seccomp.h, audit.h, filter.h and the system call tables.
const (
	auditX86_64 = 0xc000003e
	auditI386   = 0x40000003
	auditARM64  = 0xc00000b7
	auditARM    = 0x40000028

	tiocsti   = 0x5412 // puts a character into a terminal's input
	tioclinux = 0x541c // pastes on a virtual console

	retAllow = 0x7fff0000
	retEPERM = 0x00050001

	bpfLoad = 0x20 // BPF_LD | BPF_W | BPF_ABS
	bpfJeq  = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
	bpfRet  = 0x06 // BPF_RET | BPF_K

	offNr, offArch, offArg1 = 0, 4, 24 // in struct seccomp_data, little endian
)

// ttyFilter is a seccomp program, as bubblewrap reads it, that refuses the two
// ioctls with which a program types into the terminal that it shares with the
// caller's shell, and allows all else. It knows the system call numbers of x86
// and ARM in both word sizes; ok is false on a machine of another kind, where
// the command needs a session of its own.
func ttyFilter(arch string) (program []byte, ok bool) {
	if arch != "amd64" && arch != "arm64" {
		return nil, false
	}
	type insn struct {
		code   uint16
		jt, jf uint8
		k      uint32
	}
	ioctls := []struct {
		arch uint32
		nr   []uint32
	}{
		{auditX86_64, []uint32{16, 0x40000000 | 514}}, // and its x32 form
		{auditI386, []uint32{54}},
		{auditARM64, []uint32{29}},
		{auditARM, []uint32{54}},
	}
	// Each block: arch? then nr; on a match fall through to the check at the
	// end, whose distance is patched below.
	prog := []insn{{bpfLoad, 0, 0, offArch}}
	var toCheck []int
	for _, c := range ioctls {
		prog = append(prog, insn{bpfJeq, 0, uint8(len(c.nr) + 2), c.arch}, insn{bpfLoad, 0, 0, offNr})
		for _, nr := range c.nr {
			toCheck = append(toCheck, len(prog))
			prog = append(prog, insn{bpfJeq, 0, 0, nr})
		}
		prog = append(prog, insn{bpfRet, 0, 0, retAllow})
	}
	prog = append(prog, insn{bpfRet, 0, 0, retEPERM}) // no machine that was compiled for
	for _, i := range toCheck {
		prog[i].jt = uint8(len(prog) - i - 1)
	}
	prog = append(prog,
		insn{bpfLoad, 0, 0, offArg1},
		insn{bpfJeq, 2, 0, tiocsti},
		insn{bpfJeq, 1, 0, tioclinux},
		insn{bpfRet, 0, 0, retAllow},
		insn{bpfRet, 0, 0, retEPERM},
	)
	for _, in := range prog {
		program = binary.LittleEndian.AppendUint16(program, in.code)
		program = append(program, in.jt, in.jf)
		program = binary.LittleEndian.AppendUint32(program, in.k)
	}
	return program, true
}
