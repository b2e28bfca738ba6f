package check

import (
	"reflect"
	"strings"
	"testing"
)

// Whatever the command, a check ends, says the same twice, and is not talked
// out of a plain violation by what comes before it.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		"go build ./...", "cd sub && cat ../../x", "a=~; echo ${a:-b} ${a%/*} ${#a} $((1+$(echo 2)))", "for i in {1..3}{a,b}; do cd $i; done",
		"f() { f \"$@\"; }; f a b", "cat <<EOF\n$(ls /)\nEOF", "sh -c 'sh -c \"sh -c ls\"'", "eval eval eval ls", "case $x in /*) ;; esac",
		"[[ -f /x && $y == z* ]]", "find . -exec sh -c 'cat {}' \\;", "$'\\x2fetc'", "a=(1 2); echo ${a[@]}", "while cd ..; do :; done", "env -S 'a b' -C /",
	} {
		f.Add(seed)
	}
	sc, s := checkScope(f)
	f.Fuzz(func(t *testing.T, command string) {
		one, err := Check(sc, s, command)
		if err != nil {
			return
		}
		two, err := Check(sc, s, command)
		if err != nil || !reflect.DeepEqual(one, two) {
			t.Errorf("%q: %+v, then %+v, %v", command, one, two, err)
		}
		r, err := Check(sc, s, "cat /etc/shadow\n"+command)
		if err != nil {
			return // an alias or a here-document that now begins elsewhere
		}
		if r.OK {
			t.Errorf("no violation in %q", r.Command)
		}
		for _, v := range append(r.Violations, r.Unknown...) {
			if strings.ContainsAny(v.Token, "\x00\x01\x02") && !strings.ContainsAny(command, "\x00\x01\x02") {
				t.Errorf("a mark is left in %q of %q", v.Token, command)
			}
		}
	})
}
