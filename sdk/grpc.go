package sdk

import (
	"context"

	"google.golang.org/grpc"

	frontendv1 "github.com/research-harness/harness/sdk/proto/frontend/v1"
)

// NewClient returns a [Frontend] that asks the server behind conn.
func NewClient(conn grpc.ClientConnInterface) Frontend {
	return &client{rpc: frontendv1.NewFrontendClient(conn)}
}

type client struct{ rpc frontendv1.FrontendClient }

func (c *client) Describe(ctx context.Context, req Request) (Contribution, error) {
	resp, err := c.rpc.Describe(ctx, requestToProto(req))
	if err != nil {
		return Contribution{}, err
	}
	return contributionFromProto(resp), nil
}

type server struct {
	frontendv1.UnimplementedFrontendServer
	frontend Frontend
}

func (s *server) Describe(ctx context.Context, req *frontendv1.DescribeRequest) (*frontendv1.DescribeResponse, error) {
	c, err := s.frontend.Describe(ctx, requestFromProto(req))
	if err != nil {
		return nil, err
	}
	c.SDKVersion = Version
	return contributionToProto(c), nil
}

func requestToProto(r Request) *frontendv1.DescribeRequest {
	return &frontendv1.DescribeRequest{
		Os: r.OS, Arch: r.Arch, Home: r.Home, HarnessVersion: r.HarnessVersion, Env: r.Env,
	}
}

func requestFromProto(r *frontendv1.DescribeRequest) Request {
	return Request{
		OS: r.GetOs(), Arch: r.GetArch(), Home: r.GetHome(),
		HarnessVersion: r.GetHarnessVersion(), Env: r.GetEnv(),
	}
}

func contributionToProto(c Contribution) *frontendv1.DescribeResponse {
	r := &frontendv1.DescribeResponse{
		Name: c.Name, Command: c.Command, Title: c.Title, SdkVersion: c.SDKVersion,
		Env: c.Env, State: pathsToProto(c.State), Own: c.Own, DenyWrite: c.DenyWrite,
		Ensure: pathsToProto(c.Ensure), TestedVersions: c.TestedVersions, SettingsFile: c.SettingsFile,
	}
	for _, a := range c.Args {
		arg := &frontendv1.Arg{Versions: a.Versions}
		if a.Override != "" {
			arg.Value = &frontendv1.Arg_Override{Override: a.Override}
		} else {
			arg.Value = &frontendv1.Arg_Literal{Literal: a.Literal}
		}
		r.Args = append(r.Args, arg)
	}
	for _, o := range c.Overrides {
		r.Overrides = append(r.Overrides, &frontendv1.Override{Name: o.Name, Content: o.Content})
	}
	for _, a := range c.RefusedArgs {
		r.RefusedArgs = append(r.RefusedArgs, &frontendv1.RefusedArg{Arg: a.Arg, Reason: a.Reason})
	}
	return r
}

func contributionFromProto(r *frontendv1.DescribeResponse) Contribution {
	c := Contribution{
		Name: r.GetName(), Command: r.GetCommand(), Title: r.GetTitle(), SDKVersion: r.GetSdkVersion(),
		Env: r.GetEnv(), State: pathsFromProto(r.GetState()), Own: r.GetOwn(), DenyWrite: r.GetDenyWrite(),
		Ensure: pathsFromProto(r.GetEnsure()), TestedVersions: r.GetTestedVersions(), SettingsFile: r.GetSettingsFile(),
	}
	for _, a := range r.GetArgs() {
		c.Args = append(c.Args, Arg{Literal: a.GetLiteral(), Override: a.GetOverride(), Versions: a.GetVersions()})
	}
	for _, o := range r.GetOverrides() {
		c.Overrides = append(c.Overrides, Override{Name: o.GetName(), Content: o.GetContent()})
	}
	for _, a := range r.GetRefusedArgs() {
		c.RefusedArgs = append(c.RefusedArgs, RefusedArg{Arg: a.GetArg(), Reason: a.GetReason()})
	}
	return c
}

func pathsToProto(ps []Path) []*frontendv1.Path {
	var out []*frontendv1.Path
	for _, p := range ps {
		out = append(out, &frontendv1.Path{Path: p.Path, Kind: frontendv1.Kind(p.Kind), Content: p.Content})
	}
	return out
}

func pathsFromProto(ps []*frontendv1.Path) []Path {
	var out []Path
	for _, p := range ps {
		out = append(out, Path{Path: p.GetPath(), Kind: Kind(p.GetKind()), Content: p.GetContent()})
	}
	return out
}
