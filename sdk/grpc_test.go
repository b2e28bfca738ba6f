package sdk

import (
	"context"
	"errors"
	"net"
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	frontendv1 "github.com/research-harness/harness/sdk/proto/frontend/v1"
)

// dial serves f in memory and returns a client of it.
func dial(t *testing.T, f Frontend) Frontend {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	s := grpc.NewServer()
	frontendv1.RegisterFrontendServer(s, &server{frontend: f})
	go s.Serve(l)
	t.Cleanup(s.Stop)
	conn, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return NewClient(conn)
}

// filled returns a T with a value in every field, so that a field that a
// conversion forgets is seen.
func filled[T any](t *testing.T) T {
	t.Helper()
	var v T
	fill(t, reflect.ValueOf(&v).Elem())
	return v
}

func fill(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("text of " + v.Type().Name() + " é")
	case reflect.Int:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint(0xff)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, k)
		fill(t, e)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("cannot fill %s", v.Type())
	}
}

func TestWire_carries_every_field(t *testing.T) {
	want := filled[Contribution](t)
	want.SDKVersion = Version
	want.Args = []Arg{{Literal: "a", Versions: ">= 2"}, {Override: "b"}, {}} // one of the two
	wantReq := filled[Request](t)
	var gotReq Request
	f := dial(t, Func(func(_ context.Context, r Request) (Contribution, error) {
		gotReq = r
		return want, nil
	}))
	got, err := f.Describe(t.Context(), wantReq)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("answer is %+v, want %+v", got, want)
	}
	if !reflect.DeepEqual(gotReq, wantReq) {
		t.Errorf("request is %+v, want %+v", gotReq, wantReq)
	}
}

func TestWire_carries_empty_messages(t *testing.T) {
	f := dial(t, Func(func(context.Context, Request) (Contribution, error) { return Contribution{}, nil }))
	got, err := f.Describe(t.Context(), Request{})
	if err != nil || !reflect.DeepEqual(got, Contribution{SDKVersion: Version}) {
		t.Errorf("answer is %+v, %v", got, err)
	}
}

func TestWire_carries_an_error_and_a_deadline(t *testing.T) {
	f := dial(t, Func(func(ctx context.Context, r Request) (Contribution, error) {
		if r.OS == "plan9" {
			return Contribution{}, errors.New("no plan9")
		}
		<-ctx.Done()
		return Contribution{}, ctx.Err()
	}))
	_, err := f.Describe(t.Context(), Request{OS: "plan9"})
	if status.Code(err) != codes.Unknown || status.Convert(err).Message() != "no plan9" {
		t.Errorf("error is %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err = f.Describe(ctx, Request{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("error is %v", err)
	}
}
