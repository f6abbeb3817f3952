package peers

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"dts"
	"dts/web/api"
)

// RouterOptions is what a Router needs. All fields but Log must be set.
type RouterOptions struct {
	Local   Local
	Outputs api.Outputs // of the runs on this server
	Store   Store
	Client  *Client
	Log     *slog.Logger // default: discards
}

// Router does what is asked of this server, or lets the server do it that is responsible. Its methods may be called
// concurrently, and block as those of a scheduler do.
type Router struct {
	o     RouterOptions
	retry time.Duration // how long a verb waits for someone who is responsible

	mu      sync.Mutex
	closed  bool
	hubs    map[string]*hub // by tenant, as long as somebody listens
	running sync.WaitGroup
}

var (
	_ api.Scheduler = (*Router)(nil)
	_ api.Outputs   = (*Router)(nil)
)

// NewRouter makes a Router. Close ends its subscriptions.
func NewRouter(o RouterOptions) (*Router, error) {
	if o.Local == nil || o.Outputs == nil || o.Store == nil || o.Client == nil {
		return nil, errors.New("peers: Local, Outputs, Store and Client must be set")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Router{o: o, retry: retryTime, hubs: map[string]*hub{}}, nil
}

// Status says how this server's scheduler is doing.
func (r *Router) Status() dts.SchedulerStatus { return r.o.Local.Status() }

// Ready returns nil, or why this server does not accept and fire tasks.
func (r *Router) Ready() error { return r.o.Local.Ready() }

// Who is responsible can change at any moment. A verb waits for one who is, and asks again.
const (
	retryTime  = 3 * time.Second
	firstPause = 20 * time.Millisecond
	maxPause   = 400 * time.Millisecond
)

// verb is one change on its way to whoever is responsible.
type verb struct {
	what string // what it is about, for messages: "the task 0192…"
	// again says that doing it twice comes to the same as doing it once, so that it may be asked for again when the
	// outcome of the first time is unknown.
	again bool
	// gone says that what is not there any more, after a call whose outcome is unknown, is as it was meant to be.
	gone bool
	// owner reads who is responsible now; "" when nobody is.
	owner func(ctx context.Context, p *dts.Placement) (id string, err error)
	local func(ctx context.Context) error

	method string
	ask    *request
	tasks  []*dts.Task
	time   time.Duration // limit of one call; default: verbTime
}

// do has a verb done. With a nil answer and no error it was done here.
func (r *Router) do(ctx context.Context, v *verb) (*answer, error) {
	deadline := time.Now().Add(r.retry)
	var lost *noAnswer // the call whose outcome is unknown
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		p := r.o.Local.Placement()
		a, err := r.try(ctx, v, &p)
		silent, isSilent := errors.AsType[*noAnswer](err)
		code := dts.CodeOf(err)
		switch {
		case err == nil:
			return a, nil
		case code == dts.ErrNotFound && lost != nil && v.gone:
			return &answer{}, nil
		case isSilent && silent.maybe && !v.again:
			return nil, v.unknown(silent)
		case isSilent && silent.maybe:
			lost = silent
		case isSilent:
			err = &dts.Error{Code: dts.ErrUnavailable, Err: silent, Message: "the server " + silent.node.ID +
				", which is responsible for " + v.what + ", cannot be reached; try again" + silent.why()}
		case code == dts.ErrElsewhere:
			err = &dts.Error{Code: dts.ErrUnavailable, Err: err, Message: v.what + " is just going from one server to another; try again"}
		case code == dts.ErrUnavailable && (len(p.Nodes) > 1 || err == errNobody): // it may be stopping, and another one takes over
			if err == errNobody {
				err = dts.Errorf(dts.ErrUnavailable, "no server is responsible for %s at the moment; try again", v.what)
			}
		default:
			return nil, v.after(lost, err)
		}
		if time.Now().After(deadline) || sleep(ctx, pause) != nil {
			return nil, v.after(lost, err)
		}
		r.o.Local.Poke()
	}
}

// errNobody says that nobody is responsible.
var errNobody error = dts.Errorf(dts.ErrUnavailable, "no server is responsible")

// try has a verb done by who is responsible now.
func (r *Router) try(ctx context.Context, v *verb, p *dts.Placement) (*answer, error) {
	id, err := v.owner(ctx, p)
	if err != nil {
		return nil, err
	}
	if id == p.Self && id != "" {
		return nil, v.local(ctx)
	}
	n, lives := p.Node(id)
	if !lives {
		return nil, errNobody
	}
	return r.ask(ctx, n, v)
}

// ask calls the server that is responsible, and gives up when that one no longer counts as alive.
func (r *Router) ask(ctx context.Context, n dts.Node, v *verb) (*answer, error) {
	limit := v.time
	if limit == 0 {
		limit = verbTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer r.watch(n, cancel)()
	return r.o.Client.call(ctx, n, v.method, v.ask, v.tasks...)
}

// watch calls gone when a server stops to count as alive. The function that it returns ends that.
func (r *Router) watch(n dts.Node, gone func()) (end func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		look := time.NewTicker(500 * time.Millisecond)
		defer look.Stop()
		for {
			select {
			case <-done:
				return
			case <-look.C:
				if !r.same(n) {
					gone()
					return
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}

// same reports whether a server still lives, and has not been started anew.
func (r *Router) same(n dts.Node) bool {
	p := r.o.Local.Placement()
	now, lives := p.Node(n.ID)
	return lives && now.Incarnation == n.Incarnation && now.Address == n.Address
}

// after returns the error of a verb: err, unless an earlier call's outcome is unknown. What was refused then may have
// been refused because that call has done it.
func (v *verb) after(lost *noAnswer, err error) error {
	if lost == nil || dts.CodeOf(err) == dts.ErrUnknown {
		return err
	}
	return &dts.Error{Code: dts.ErrUnknown, Err: errors.Join(lost, err),
		Message: "the server " + lost.node.ID + " was asked to change " + v.what + " and did not answer; whether it did is unknown, and asking again does no harm"}
}

// unknown is the error of a call that must not be sent again.
func (v *verb) unknown(e *noAnswer) error {
	return &dts.Error{Code: dts.ErrUnknown, Err: e,
		Message: "the server " + e.node.ID + " was asked for " + v.what + " and did not answer; whether it was done is unknown, so look before you ask again"}
}

// why is what the other server gave as its reason; "" when it gave none.
func (e *noAnswer) why() string {
	if no, ok := errors.AsType[*refusal](e.err); ok {
		return " (it says: " + no.text + ")"
	}
	return ""
}

// sleep waits, unless ctx is done before.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// holder returns who holds a shard; "" when nobody does.
func holder(p *dts.Placement, shard int) string {
	if shard < 0 || shard >= dts.Shards {
		return ""
	}
	return p.Holders[shard]
}

// creator returns who creates something: this server if it holds any shard, else one that does.
func creator(_ context.Context, p *dts.Placement) (string, error) {
	if slices.Contains(p.Holders[:], p.Self) {
		return p.Self, nil
	}
	var some []string
	for _, n := range p.Nodes {
		if slices.Contains(p.Holders[:], n.ID) {
			some = append(some, n.ID)
		}
	}
	if len(some) == 0 {
		return "", nil
	}
	return some[rand.IntN(len(some))], nil
}

// unread is the error of a change that was made, but whose result could not be read.
func unread(what string, err error) error {
	return &dts.Error{Code: dts.ErrUnknown, Message: what + ": that is done, but what it has led to could not be read", Err: err}
}
