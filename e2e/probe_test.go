package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

// probeArg makes the test's own binary, started inside a session, one of the
// probes below instead.
const probeArg = "e2e-probe"

func probe(args []string) {
	switch args[0] {
	case "args": // each argument, quoted
		for _, a := range args[1:] {
			fmt.Printf("%q\n", a)
		}
	case "proxy": // the status that the proxy answers for each host
		client := http.Client{Timeout: time.Minute, Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment,
			OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, r *http.Response) error {
				fmt.Println(r.StatusCode)
				return errors.New("enough")
			},
		}}
		for _, host := range args[1:] {
			if r, err := client.Get("https://" + host); err == nil {
				r.Body.Close()
				fmt.Println("no proxy")
			}
		}
	case "dial": // a connection past the proxy
		conn, err := net.DialTimeout("tcp", args[1], 5*time.Second)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_ = conn.Close()
		fmt.Println("connected")
	}
}

// probe runs a probe in a session of a stand-in.
func (w *world) probe(command string, args ...string) result {
	w.t.Helper()
	exe, err := os.Executable()
	w.must(err)
	return w.agentbox(append([]string{command, exe, probeArg}, args...)...)
}
