package e2e

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
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
	case "npm": // what npm prints, with a registry of the package that a file holds
		file, err := os.ReadFile(args[1])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		sum := sha512.Sum512(file)
		const address = "127.0.0.1:18081"
		go func() {
			fmt.Println(http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/dep" {
					_, _ = w.Write(file)
					return
				}
				fmt.Fprintf(w, `{"name": "dep", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "dep", "version": "1.0.0",
					"dist": {"tarball": "http://%s/dep.tgz", "integrity": "sha512-%s"}}}}`, address, base64.StdEncoding.EncodeToString(sum[:]))
			})))
		}()
		cmd := exec.Command("npm", append(args[2:], "--registry", "http://"+address, "--fetch-retry-mintimeout", "100")...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	case "dial": // a connection past the proxy
		conn, err := net.DialTimeout(args[1], args[2], 5*time.Second)
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
