// Package peers makes any server of a cluster serve anything: what is asked of one server is done by the one that is
// responsible for it.
//
// It promises three things. A change is made once: a call whose outcome is unknown is sent again only where doing it
// twice comes to the same, and is dts.ErrUnknown otherwise. Nothing goes in circles: a server that is asked by another
// one never asks a third, but says dts.ErrElsewhere. And nothing waits without end: every call, stream, body and list
// has a limit, and a server that does not answer costs the others nothing but the calls that it was to answer.
//
// Router stands in the place of the scheduler and of the runner's outputs, and finds out who is responsible. Client
// calls other servers, over HTTP, and Handler answers them, at /cluster/. Servers know each other by a secret that all
// of them read from the database. Over http it travels in the clear, as the tasks do: the addresses that servers
// advertise belong to a network that nobody else listens to, or use https.
package peers

import (
	"context"
	"time"

	"dts"
	"dts/web/api"
)

// Local is the scheduler of this server. Its methods answer dts.ErrElsewhere, and change nothing, where another
// server is responsible; Bulk leaves out what it is not responsible for.
type Local interface {
	api.Scheduler
	// Placement is who does what, as this server last saw it.
	Placement() dts.Placement
	// Poke makes it look at the members of the cluster now. It returns at once.
	Poke()
	// Wake tells it of tasks that were made ready in shards that it holds. It returns at once.
	Wake(ids []string)
	// QueueLoads is how much came into the queues of a tenant on this server lately.
	QueueLoads(tenant string) map[string]dts.QueueLoad
}

// Store is what a Router reads to find out who is responsible, and to tell what a change has led to.
type Store interface {
	Task(ctx context.Context, tenant, id string) (*dts.Task, error)
	Tasks(ctx context.Context, f dts.TaskFilter) (dts.Page[*dts.Task], error)
	TasksByID(ctx context.Context, ids []string) ([]*dts.Task, error)
	Unfinished(ctx context.Context, tenant, dedupeKey string) (*dts.Task, error)
	Graph(ctx context.Context, tenant, id string, limit int) (*dts.Graph, error)
	RecurringTask(ctx context.Context, tenant, id string) (*dts.RecurringTask, error)
}

// Limits and times.
const (
	maxCreate  = 48 << 20 // bytes of a call that creates tasks: 32 MB of JSON, and what defaults add
	maxCall    = 4 << 20  // bytes of any other call
	maxAnswer  = 4 << 20  // bytes of an answer: 10,000 ids
	maxEvent   = 256 << 10
	maxNotices = 10_000 // ids that wait to be told to one server
	maxStreams = 512    // event streams and waits for output that a server answers at once
	maxCreates = 4      // calls that create tasks in memory at once; others wait

	dialTime   = 2 * time.Second
	noticeTime = 2 * time.Second   // of Poke and Wake
	shortTime  = 5 * time.Second   // of a call that only looks
	verbTime   = 30 * time.Second  // of a verb: the database may have to find a leader first
	longTime   = 100 * time.Second // of one that waits for runs to end
	serveTime  = 110 * time.Second // of any call, at the server that answers it

	pollTime    = 10 * time.Second // how long a read of live output waits at the other server
	beatTime    = 5 * time.Second  // between signs of life of a stream
	silenceTime = 15 * time.Second // without one, it is broken
	writeTime   = 10 * time.Second // of a part of a stream: who reads slower than that is gone
)
