package verify

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/research-harness/harness/host/internal/system"
)

// Verb is the hidden verb that runs inside the sandbox.
const Verb = "probe"

// request is what the probe is to try inside the sandbox. Its answer has one
// result for each element, in order.
type request struct {
	Token string   `json:"token"` // the name of files that it makes
	Read  []string `json:"read"`
	Write []string `json:"write"`
	Hosts []string `json:"hosts"` // host:port, through the proxy
	// Loopback is an address outside of the sandbox, to connect to past the proxy.
	Loopback string `json:"loopback"`
}

// response is what the probe found.
type response struct {
	Read  []readResult  `json:"read"`
	Write []writeResult `json:"write"`
	Hosts []int         `json:"hosts"` // the proxy's status, 0 for none
	// Loopback, Unix and Temp are why a direct connection, a Unix socket and a
	// temporary directory cannot be had, or empty.
	Loopback string `json:"loopback"`
	Unix     string `json:"unix"`
	Temp     string `json:"temp"`
	TempDir  string `json:"tempDir"`
	Agentbox bool   `json:"agentbox"`
}

// readResult is what is at a path there.
type readResult struct {
	ID   string `json:"id"`   // names a file or directory whatever the way to it
	Open bool   `json:"open"` // whether its content can be read
}

// writeResult is whether a path could be written there.
type writeResult struct {
	Error string `json:"error"` // why not, or empty
	ID    string `json:"id"`    // of the file that was opened, empty where one was made
}

// ProbeMain is the verb's main. It reads a request from the standard input of s,
// tries everything, and writes the answer to its standard output. What it makes
// is called after the token and holds the token alone; it removes what it can.
func ProbeMain(s *system.System) error {
	var q request
	if err := json.NewDecoder(s.Stdin).Decode(&q); err != nil {
		return err
	}
	r := response{}
	_, r.Agentbox = s.LookupEnv("AGENTBOX")
	for _, p := range q.Read {
		r.Read = append(r.Read, look(p))
	}
	for _, p := range q.Write {
		r.Write = append(r.Write, tryWrite(p, q.Token))
	}
	r.Hosts = throughProxy(s, q.Hosts)
	conn, err := net.DialTimeout("tcp", q.Loopback, time.Second)
	if err == nil {
		conn.Close()
	}
	r.Loopback = message(err)
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.Close(fd)
	}
	r.Unix = message(err)
	r.TempDir = cmp.Or(s.Getenv("TMPDIR"), "/tmp")
	dir, err := os.MkdirTemp(r.TempDir, q.Token)
	if err == nil {
		os.Remove(dir)
	}
	r.Temp = message(err)
	return json.NewEncoder(s.Stdout).Encode(r)
}

func message(err error) string {
	if err == nil {
		return ""
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// look stats p and reads a little of it. It opens nothing that could block or
// act.
func look(p string) readResult {
	info, err := os.Stat(p)
	if err != nil {
		return readResult{}
	}
	r := readResult{ID: identity(info)}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return r
	}
	f, err := os.Open(p)
	if err != nil {
		return r
	}
	defer f.Close()
	if info.IsDir() {
		_, err = f.Readdirnames(1)
	} else {
		_, err = f.Read(make([]byte, 1))
	}
	r.Open = err == nil || errors.Is(err, io.EOF)
	return r
}

// identity names a file or directory whatever the way to it.
func identity(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// tryWrite makes, appends to, renames and removes a file in p where that is a
// directory, and leaves another there for the host to see. A file is opened for
// writing and left as it is; where there is none it is made.
func tryWrite(p, token string) writeResult {
	info, err := os.Stat(p)
	switch {
	case err == nil && info.IsDir():
		return writeResult{Error: message(writeIn(p, token))}
	case err == nil && info.Mode().IsRegular():
		f, err := os.OpenFile(p, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			err = f.Close()
		}
		return writeResult{message(err), identity(info)}
	case err == nil:
		return writeResult{Error: "it is no file and no directory"}
	}
	return writeResult{Error: message(create(p, token))}
}

func writeIn(dir, token string) error {
	first, second, stays := filepath.Join(dir, token+"-1"), filepath.Join(dir, token+"-2"), filepath.Join(dir, token)
	if err := create(stays, token); err != nil {
		return err
	}
	if err := create(first, token); err != nil {
		return err
	}
	f, err := os.OpenFile(first, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(first, second); err != nil {
		return err
	}
	return os.Remove(second)
}

func create(p, token string) error {
	f, err := os.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(token)
	return errors.Join(err, f.Close())
}

// throughProxy asks the session's proxy for a tunnel to each host and returns
// its statuses.
func throughProxy(s *system.System, hosts []string) []int {
	statuses := make([]int, len(hosts))
	proxy, err := url.Parse(cmp.Or(s.Getenv("HTTPS_PROXY"), s.Getenv("https_proxy")))
	if err != nil || proxy.Host == "" {
		return statuses
	}
	auth := ""
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		auth = "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)) + "\r\n"
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 32)
	for i, host := range hosts {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			conn, err := net.DialTimeout("tcp", proxy.Host, time.Second)
			if err != nil {
				return
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
			fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", host, host, auth)
			answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
			if err == nil {
				answer.Body.Close()
				statuses[i] = answer.StatusCode
			}
		})
	}
	wg.Wait()
	return statuses
}

// upstream is a proxy on the host that refuses everything. srt hands to it what
// the policy allows, so that a domain can be tried without being reached.
type upstream struct{ net.Listener }

// upstreamStatus is what it answers, which srt hands on in some 5xx.
const upstreamStatus = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"

func newUpstream() (*upstream, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u := &upstream{l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.WriteString(conn, upstreamStatus)
				}
			}()
		}
	}()
	return u, nil
}
