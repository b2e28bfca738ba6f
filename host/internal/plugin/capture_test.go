package plugin

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// A plugin's last words came too late on a busy machine, and the message did
// not say why it ended.
func TestCapture_reads_what_was_written_in_time(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close() // held open, as by a child of the plugin
	words := strings.Repeat("license expired\n", 2000)
	if _, err := w.WriteString(words); err != nil {
		t.Fatal(err)
	}
	c := &capture{file: r, ended: make(chan struct{})}
	c.expire(-time.Second)
	got, err := io.ReadAll(c)
	if err != nil || string(got) != words {
		t.Errorf("read %d of %d bytes, %v", len(got), len(words), err)
	}
	<-c.ended
}

func TestCapture_ends_though_a_child_writes_on(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer w.Close()
		for err := error(nil); err == nil; {
			_, err = w.WriteString("more\n")
		}
	}()
	c := &capture{file: r, ended: make(chan struct{})}
	c.expire(0)
	got, err := io.ReadAll(c)
	r.Close() // ends the writer
	if err != nil || len(got) > 2*maxPipe {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}
