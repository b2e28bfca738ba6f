package sdk

import (
	"fmt"
	"path"
)

// EnvDir returns the directory that the variable called name gives, or
// fallback where it is unset or empty. A relative value is an error: it means
// another directory for every place that the agent is started in, and none of
// them can be protected.
func (r Request) EnvDir(name, fallback string) (string, error) {
	value := r.Env[name]
	switch {
	case value == "":
		return fallback, nil
	case !path.IsAbs(value):
		return "", fmt.Errorf("%s %q is not an absolute path", name, value)
	}
	return path.Clean(value), nil
}
