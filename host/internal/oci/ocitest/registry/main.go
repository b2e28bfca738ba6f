// Registry is an OCI registry for tests. It prints its address and serves
// until its standard input ends. With the argument USER:PASSWORD it asks for
// them; with "truncate" it cuts every large blob short, and with "corrupt" it
// changes them.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	mode := ""
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	reg := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := strings.Cut(mode, ":"); ok {
			if u, p, _ := r.BasicAuth(); u != user || p != password {
				w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
		}
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			w = &damaged{ResponseWriter: w, mode: mode}
		}
		reg.ServeHTTP(w, r)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr())
	go func() { log.Fatal(http.Serve(l, handler)) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

type damaged struct {
	http.ResponseWriter
	mode string
	sent int
}

func (d *damaged) Write(b []byte) (int, error) {
	switch d.mode {
	case "truncate":
		if d.sent > 1000 {
			panic(http.ErrAbortHandler)
		}
		b = b[:min(len(b), 1001)]
	case "corrupt":
		b = append([]byte("x"), b[1:]...)
	}
	n, err := d.ResponseWriter.Write(b)
	d.sent += n
	return n, err
}
