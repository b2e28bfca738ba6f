package sdk

import (
	"context"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	frontendv1 "github.com/research-harness/harness/sdk/proto/frontend/v1"
)

// Serve answers the host until it is done, and does not return before. It is
// the whole main function of a plugin. Started by hand it says what the
// program is and exits.
//
// Standard output belongs to the handshake. What the frontend logs with
// [Logger], or writes to standard error, ends in the host's log.
func Serve(f Frontend) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: Handshake(),
		Plugins:         plugin.PluginSet{PluginName: &GRPCPlugin{Frontend: f}},
		GRPCServer:      func(opts []grpc.ServerOption) *grpc.Server { return grpc.NewServer(opts...) },
		Logger:          Logger(),
	})
}

// Logger returns a logger whose lines the host takes over with their level.
func Logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Level:      hclog.Info,
		Output:     os.Stderr,
		JSONFormat: true,
	})
}

// ProtocolVersion is the version of the protocol in frontend.proto.
const ProtocolVersion = 1

// PluginName is the name under which a plugin dispenses its frontend.
const PluginName = "frontend"

// Handshake is what both sides of the protocol agree on before they speak.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{
		ProtocolVersion:  ProtocolVersion,
		MagicCookieKey:   "HARNESS_FRONTEND_PLUGIN",
		MagicCookieValue: "research-harness-frontend",
	}
}

// GRPCPlugin joins a [Frontend] to go-plugin. The host uses it with a nil
// Frontend; authors need only [Serve].
type GRPCPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	Frontend Frontend
}

// GRPCServer registers the frontend.
func (p *GRPCPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	frontendv1.RegisterFrontendServer(s, &server{frontend: p.Frontend})
	return nil
}

// GRPCClient returns a [Frontend] that asks over conn.
func (p *GRPCPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return NewClient(conn), nil
}
