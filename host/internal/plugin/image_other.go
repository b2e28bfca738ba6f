//go:build !linux

package plugin

import (
	"errors"
	"os"
	"syscall"
)

// memoryImage cannot be had.
func memoryImage(*os.File) (*image, error) { return nil, errors.ErrUnsupported }

// dieWithHost cannot be had: a plugin ends with a host that ends by itself,
// not with one that is killed.
func dieWithHost(*syscall.SysProcAttr) {}
