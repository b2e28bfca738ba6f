package launch

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/research-harness/harness/host/internal/problem"
)

// specVersion is the version of the launch files' format.
const specVersion = 1

// Spec is launch/<command>.json: all that the launcher needs of one chosen
// frontend, so that no plugin runs when a session starts.
type Spec struct {
	Version  int    `json:"version"` // set by Encode
	Frontend string `json:"frontend"`
	Command  string `json:"command"`
	Title    string `json:"title"`
	// Settings is the srt settings file, absolute.
	Settings string `json:"settings"`
	// Overrides are the override files, absolute. Each must be a regular file
	// at launch.
	Overrides []string `json:"overrides"`
	// Args precede the user's arguments.
	Args []Arg `json:"args"`
	// Refused are the arguments that the launcher refuses.
	Refused []Refused `json:"refused"`
	// Env holds the value at install of each variable that the plugin named,
	// nil where it was unset. A variable with another value refuses the start.
	Env map[string]*string `json:"env"`
	// Program is the frontend's program as install found it. It is set only
	// where an argument depends on the version and a program was found.
	Program *Program `json:"program,omitempty"`
}

// Arg is one argument of the frontend.
type Arg struct {
	Value string `json:"value"`
	// Versions is a constraint such as ">= 2" on the program's version, or
	// empty. The argument is left out where the version does not satisfy it.
	Versions string `json:"versions,omitempty"`
}

// Refused is an argument that the launcher refuses: one equal to Arg, or one
// that begins with Arg and an equals sign.
type Refused struct {
	Arg    string `json:"arg"`
	Reason string `json:"reason"` // what to do instead, one clause
}

// Program is a program's file and the version that it said it has. The
// version holds as long as the rest does.
type Program struct {
	Path    string `json:"path"` // symbolic links resolved
	Size    int64  `json:"size"`
	ModTime int64  `json:"modTime"` // nanoseconds since 1970
	Version string `json:"version"` // empty where it could not be found
}

// Index is launch/index.json: every trusted frontend, chosen or not.
type Index struct {
	Version   int          `json:"version"` // set by Encode
	Frontends []IndexEntry `json:"frontends"`
}

// IndexEntry is a frontend's policy name, command and title.
type IndexEntry struct {
	Name    string `json:"name"`
	Command string `json:"command"`
	Title   string `json:"title"`
}

// Encode returns the bytes of launch/<command>.json.
func (s Spec) Encode() []byte {
	s.Version = specVersion
	s.Overrides = notNil(s.Overrides)
	s.Args = notNil(s.Args)
	s.Refused = notNil(s.Refused)
	if s.Env == nil {
		s.Env = map[string]*string{}
	}
	return encode(s)
}

// Encode returns the bytes of launch/index.json.
func (x Index) Encode() []byte {
	x.Version = specVersion
	x.Frontends = notNil(x.Frontends)
	return encode(x)
}

func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("a launch file of strings and numbers does not encode: %v", err))
	}
	return b.Bytes()
}

// decode reads a launch file of this version into v.
func decode(data []byte, v any) error {
	var format struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &format); err != nil {
		return problem.JSON(err)
	}
	if format.Version != specVersion {
		return fmt.Errorf("has format version %d, but this harness reads %d", format.Version, specVersion)
	}
	return problem.JSON(json.Unmarshal(data, v))
}
