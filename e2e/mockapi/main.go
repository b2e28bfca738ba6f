// Mockapi runs a coding agent against a scripted model.
//
//	mockapi [-listen ADDRESS] [-record FILE] [-run COMMAND]... -- PROGRAM [ARG]...
//
// It serves the Messages API of Anthropic and the chat completions API of
// OpenAI on http://127.0.0.1:18080, starts PROGRAM with ANTHROPIC_BASE_URL set
// to there, and exits with its status. It is started inside the sandbox, from
// where the host's loopback cannot be reached and where the port is therefore
// free; elsewhere -listen 127.0.0.1:0 finds one.
//
// The model calls the agent's shell tool once for every -run, in order, and
// then answers "the tools said: " and every tool result. A request that offers
// no shell tool, such as one for a session's title, is answered with a word.
package main

import (
	"errors"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("mockapi: ")
	m := &model{}
	address := flag.String("listen", "127.0.0.1:18080", "serve on `ADDRESS`")
	flag.StringVar(&m.record, "record", "", "append the body of every request to `FILE`, one a line")
	flag.Func("run", "have the model run `COMMAND`", func(c string) error {
		m.commands = append(m.commands, c)
		return nil
	})
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("no program given")
	}

	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.Serve(listener, m.handler())) }()

	cmd := exec.Command(flag.Arg(0), flag.Args()[1:]...)
	cmd.Env = append(os.Environ(), "ANTHROPIC_BASE_URL=http://"+listener.Addr().String())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		log.Fatal(err)
	}
}
