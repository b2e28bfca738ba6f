package system

import "testing"

func TestChoice(t *testing.T) {
	for _, tt := range []struct {
		rule, key, env, want string
		chosen               bool
	}{
		{"unset", "X", "Y=1", "", false},
		{"empty", "X", "X=", "", false},
		{"set", "X", "X=/x", "/x", true},
		{"the default", "CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIR=/home/me/.claude", "", false},
		{"the default with a slash", "XDG_DATA_HOME", "XDG_DATA_HOME=/home/me/.local/share/", "", false},
		{"below the default", "XDG_DATA_HOME", "XDG_DATA_HOME=/home/me/.local/share/x", "/home/me/.local/share/x", true},
		{"another's default", "XDG_DATA_HOME", "XDG_DATA_HOME=/home/me/.config", "/home/me/.config", true},
		{"home, of a variable without a default", "X", "X=/home/me", "/home/me", true},
	} {
		s := &System{Env: []string{"HOME=/home/me", tt.env}}
		if got, chosen := s.Choice(tt.key); got != tt.want || chosen != tt.chosen {
			t.Errorf("%s: %q, %v", tt.rule, got, chosen)
		}
	}
}
