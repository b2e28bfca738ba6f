package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
)

// model answers by script.
type model struct {
	commands []string
	record   string

	mu sync.Mutex // of the record
}

// reply is what the model says next: a call of a tool, or a text.
type reply struct {
	tool, id string
	input    map[string]string
	text     string
}

// shellTools are the names that agents give their shell tool.
var shellTools = []string{"Bash", "bash", "shell"}

// next decides the reply from the tools that a request offers and the results
// that its conversation holds so far.
func (m *model) next(tools, results []string) reply {
	i := slices.IndexFunc(tools, func(t string) bool { return slices.Contains(shellTools, t) })
	switch {
	case i < 0:
		return reply{text: "Title"}
	case len(results) < len(m.commands):
		return reply{
			tool: tools[i], id: fmt.Sprintf("call_%d", len(results)),
			input: map[string]string{"command": m.commands[len(results)], "description": "run a command"},
		}
	}
	return reply{text: "the tools said: " + strings.Join(results, "\n")}
}

func (m *model) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", answer(m, messages))
	mux.HandleFunc("POST /v1/chat/completions", answer(m, completions))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	})
	return mux
}

// answer decodes and records a request, and gives it to one of the two APIs.
func answer[T any](m *model, api func(*model, *T) []event) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		req := new(T)
		if err == nil {
			err = json.Unmarshal(body, req)
		}
		if err == nil {
			err = m.save(body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range api(m, req) {
			if e.name != "" {
				fmt.Fprintf(w, "event: %s\n", e.name)
			}
			fmt.Fprintf(w, "data: %s\n\n", e.data)
		}
	}
}

func (m *model) save(body []byte) error {
	if m.record == "" {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := os.OpenFile(m.record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(body, '\n')); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// event is one server-sent event.
type event struct {
	name string
	data string
}

// obj is a JSON object that is written, not read.
type obj map[string]any

func (o obj) String() string {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // holds strings, numbers and objects alone
	}
	return string(b)
}
