// Package sdktest checks that a frontend keeps every rule of the harness: in
// memory and over gRPC with [Run], as the executable that is shipped with
// [RunExecutable]. "harness frontend test" makes the same checks.
package sdktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/research-harness/harness/sdk"
	frontendv1 "github.com/research-harness/harness/sdk/proto/frontend/v1"
)

// Limit is the time that the host gives a plugin from its start to its
// answer.
const Limit = 10 * time.Second

// MaxAnswer is the size in bytes that the host takes as an answer.
const MaxAnswer = 1 << 20

// Finding is a rule that a frontend breaks.
type Finding struct {
	Rule    string `json:"rule"`    // what every frontend does
	Message string `json:"message"` // what this one does
	Fix     string `json:"fix"`
}

// String is one line.
func (f Finding) String() string { return f.Rule + ": " + f.Message + "; " + f.Fix }

// Check asks f for its answers on several machines and returns the rules that
// they break, each once. The directory home is given to f as the user's home;
// it must be empty, and is watched for writes.
func Check(ctx context.Context, f sdk.Frontend, home string) []Finding {
	c := &checker{ctx: ctx, frontend: f}
	var first *sdk.Contribution
	for _, m := range [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}} {
		req := sdk.Request{OS: m[0], Arch: m[1], Home: home, HarnessVersion: "1.2.3"}
		answer, ok := c.ask(req)
		if !ok {
			continue
		}
		if first == nil {
			first = &answer
		}
		c.same(*first, answer, "on "+m[0]+"/"+m[1])
		c.moved(req, answer)
	}
	c.unwritten(home)
	return c.findings
}

// CheckConn is [Check] for the plugin that serves conn. It checks in addition
// what only shows on the wire.
func CheckConn(ctx context.Context, conn grpc.ClientConnInterface, home string) []Finding {
	findings := Check(ctx, sdk.NewClient(conn), home)
	if len(findings) > 0 {
		return findings // the rest would repeat them
	}
	c := &checker{ctx: ctx}
	req := &frontendv1.DescribeRequest{Os: "linux", Arch: "amd64", Home: home}
	plain, err := c.call(conn, req)
	if err != nil {
		c.add("gives an answer", err.Error(), "return no error for a plain request")
		return c.findings
	}
	if n := proto.Size(plain); n > MaxAnswer {
		c.add("gives a small answer", fmt.Sprintf("it has %d bytes, and the host takes %d", n, MaxAnswer), "give less content")
	}
	req.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 1999, protowire.BytesType), "new"))
	if newer, err := c.call(conn, req); err != nil || !proto.Equal(plain, newer) {
		c.add("ignores fields that it does not know", fmt.Sprintf("a request with a new field changes the answer or fails (%v)", err), "use a protobuf library that keeps or drops unknown fields")
	}
	return c.findings
}

type checker struct {
	ctx      context.Context
	frontend sdk.Frontend
	findings []Finding
}

func (c *checker) add(rule, message, fix string) {
	f := Finding{Rule: rule, Message: message, Fix: fix}
	if !slices.Contains(c.findings, f) {
		c.findings = append(c.findings, f)
	}
}

func (c *checker) call(conn grpc.ClientConnInterface, req *frontendv1.DescribeRequest) (*frontendv1.DescribeResponse, error) {
	ctx, cancel := context.WithTimeout(c.ctx, Limit)
	defer cancel()
	resp := new(frontendv1.DescribeResponse)
	return resp, conn.Invoke(ctx, frontendv1.Frontend_Describe_FullMethodName, req, resp)
}

// ask asks twice and checks the answer for itself.
func (c *checker) ask(req sdk.Request) (sdk.Contribution, bool) {
	answer, err := c.describe(req)
	if err != nil {
		c.add("gives an answer", fmt.Sprintf("%v (asked for %s/%s, env %v)", err, req.OS, req.Arch, req.Env), "return no error for a plain request")
		return answer, false
	}
	again, err := c.describe(req)
	if err != nil || !reflect.DeepEqual(answer, again) {
		c.add("gives the same answer twice", "a second request gets another answer", "use nothing but the request: no time, no file, no random order of a map")
	}
	if vs, ok := errors.AsType[sdk.Violations](answer.Validate(req)); ok {
		for _, v := range vs {
			c.add(v.Field, fmt.Sprintf("%q %s", v.Value, v.Rule), v.Fix)
		}
	}
	return answer, true
}

func (c *checker) describe(req sdk.Request) (answer sdk.Contribution, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, Limit)
	defer cancel()
	type result struct {
		answer sdk.Contribution
		err    error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- result{err: fmt.Errorf("panic: %v", r)}
			}
		}()
		answer, err := c.frontend.Describe(ctx, req)
		done <- result{answer, err}
	}()
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
		return sdk.Contribution{}, fmt.Errorf("no answer within %s", Limit)
	}
}

// same checks what may not depend on the request.
func (c *checker) same(a, b sdk.Contribution, when string) {
	if a.Name != b.Name || a.Command != b.Command || !slices.Equal(a.Env, b.Env) {
		c.add("has one name, command and list of variables", "they change "+when, "return the same name, command and env for every request")
	}
}

// moved gives the variables that the frontend named values as users do.
func (c *checker) moved(req sdk.Request, plain sdk.Contribution) {
	if len(plain.Env) == 0 {
		return
	}
	for _, dir := range []string{req.Home + "/moved away", "/srv/moved", "/srv/moved/", "", "relative"} {
		req.Env = map[string]string{}
		for _, name := range plain.Env {
			req.Env[name] = dir
			if dir != "" && dir != "relative" {
				req.Env[name] = filepath.Join(dir, name)
			}
		}
		if dir == "relative" {
			if _, err := c.describe(req); err != nil {
				continue // the user is told, which is as good as an answer
			}
		}
		if answer, ok := c.ask(req); ok {
			c.same(plain, answer, "with the variables' values")
		}
	}
}

// unwritten checks that home is still empty.
func (c *checker) unwritten(home string) {
	entries, err := os.ReadDir(home)
	if err != nil {
		c.add("writes nothing", "the home directory is gone", "leave the disk alone: the host creates what ensure and state name")
	}
	for _, e := range entries {
		c.add("writes nothing", "it wrote ~/"+e.Name(), "leave the disk alone: the host creates what ensure and state name")
	}
}
