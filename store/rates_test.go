package store_test

import (
	"sync"
	"testing"
	"time"

	"dts"
)

// TestTakeStarts: what is taken of a rate is shared by all who take, and as much is given as the rate has.
func TestTakeStarts(t *testing.T) {
	st, _, _ := open(t)
	k := dts.QueueKey{TenantID: dts.DefaultTenant, Name: "q"}
	r := dts.Rate{N: 10, Period: time.Second, Burst: 5}
	take := func(want int, at time.Time) dts.Starts {
		t.Helper()
		got, err := st.TakeStarts(ctx, k, r, want, at)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := take(3, now); got.N != 3 || !got.From.Equal(now.Add(-400*time.Millisecond)) {
		t.Errorf("of a burst of 5: %+v", got)
	}
	if got := take(100, now); got.N != 3 || !got.From.Equal(now.Add(-100*time.Millisecond)) {
		t.Errorf("the rest of the burst, and the next one: %+v", got)
	}
	if got := take(1, now); got.N != 0 || !got.From.Equal(now.Add(200*time.Millisecond)) {
		t.Errorf("when all is taken: %+v", got)
	}
	if got, err := st.TakeStarts(ctx, dts.QueueKey{TenantID: dts.DefaultTenant, Name: "other"}, r, 2, now); err != nil || got.N != 2 {
		t.Errorf("of another queue: %+v, %v", got, err)
	}
	// Many at once.
	later := now.Add(time.Minute)
	var wg sync.WaitGroup
	var mu sync.Mutex
	sum := 0
	for range 8 {
		wg.Go(func() {
			got, err := st.TakeStarts(ctx, k, r, 2, later)
			mu.Lock()
			defer mu.Unlock()
			sum += got.N
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if sum != 6 {
		t.Errorf("%d starts were given to 8 at once; want 5 of the burst and the next one", sum)
	}
	// What was taken of another rate counts no more.
	q := &dts.Queue{TenantID: k.TenantID, Name: k.Name, Rate: r.N, PeriodSeconds: 1, Burst: r.Burst, CreatedAt: now, UpdatedAt: now}
	put := func(token int64) {
		t.Helper()
		if err := st.PutQueue(ctx, q, token); err != nil {
			t.Fatal(err)
		}
	}
	put(1)
	take(6, later)
	put(2)
	if got := take(6, later); got.N != 0 {
		t.Errorf("the same rate again gave %+v", got)
	}
	q.Burst = 1
	put(3)
	if got := take(6, later); got.N == 0 {
		t.Errorf("another rate gave %+v", got)
	}
}

// TestLoadDueOfQueues: some queues, or all but some; and the queues do not change how what is due is found.
func TestLoadDueOfQueues(t *testing.T) {
	st, _, f := open(t)
	var tasks []*dts.Task
	for _, queue := range []string{"a", "b", "a", "c"} {
		tasks = append(tasks, task(t, func(k *dts.Task) { k.Queue = queue }))
	}
	if _, err := st.InsertTasks(ctx, f, tasks); err != nil {
		t.Fatal(err)
	}
	keys := func(names ...string) (list []dts.QueueKey) {
		for _, n := range names {
			list = append(list, dts.QueueKey{TenantID: dts.DefaultTenant, Name: n})
		}
		return append(list, dts.QueueKey{TenantID: "other", Name: "b"})
	}
	for _, tt := range []struct {
		queues dts.QueueChoice
		want   string
	}{
		{dts.QueueChoice{}, "abac"},
		{dts.QueueChoice{Only: keys("a", "c")}, "aac"},
		{dts.QueueChoice{Except: keys("a")}, "bc"},
		{dts.QueueChoice{Except: keys()}, "abac"},
	} {
		list, err := st.LoadDue(ctx, dts.AllShards, tt.queues, dts.Mark{}, now.Add(time.Hour), 10)
		got := ""
		for _, e := range list {
			if got += e.Queue; e.TenantID != dts.DefaultTenant {
				t.Errorf("%+v", e)
			}
		}
		if err != nil || got != tt.want {
			t.Errorf("%+v: %s, %v; want %s", tt.queues, got, err, tt.want)
		}
	}
}
