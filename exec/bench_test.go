package exec

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"dts"
)

// BenchmarkHTTP measures runs against a server in the same process, beside the plainest client that posts the
// same body and reads the answer. The ratio of the two is what a run costs beyond net/http.
func BenchmarkHTTP(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "ok")
	}))
	defer s.Close()
	b.Run("dts", func(b *testing.B) {
		r := newRunner(b, Options{})
		job := newJob(b, dts.HTTPTarget{URL: s.URL, Body: `{"n":1}`}, time.Minute)
		b.ReportAllocs()
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			for n := 1; pb.Next(); n++ {
				task := *job.Task
				task.ID = dts.NewID(time.Now())
				if out := r.Run(context.Background(), dts.Job{Task: &task, Number: n}); out.State != dts.AttemptSuccess {
					b.Errorf("%+v", out)
				}
			}
		})
	})
	b.Run("bare", func(b *testing.B) {
		transport := &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		b.ReportAllocs()
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				resp, err := client.Post(s.URL, "application/json", bytes.NewReader([]byte(`{"n":1}`)))
				if err != nil {
					b.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	})
}

// BenchmarkCommand measures a whole run of /bin/true.
func BenchmarkCommand(b *testing.B) {
	r := newRunner(b, Options{})
	job := newJob(b, dts.CommandTarget{Argv: []string{"true"}}, time.Minute)
	b.ReportAllocs()
	for b.Loop() {
		if out := r.Run(context.Background(), job); out.State != dts.AttemptSuccess {
			b.Fatalf("%+v", out)
		}
	}
}
