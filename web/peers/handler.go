package peers

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/gob"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"dts"
	"dts/web/api"
)

// HandlerOptions is what a Handler needs. Local, Outputs and Secret must be set.
type HandlerOptions struct {
	Local   Local
	Outputs api.Outputs // of the runs on this server
	Secret  string      // of the cluster
	Log     *slog.Logger
	Now     func() time.Time // what Clock answers; default: time.Now
}

// Handler answers the calls of other servers, at /cluster/. It needs no other protection than its own: who does not
// know the secret learns nothing, not even what is there.
type Handler struct {
	HandlerOptions
	secret  [sha256.Size]byte
	streams chan struct{} // one element per stream and per wait for output
	creates chan struct{} // one element per call that creates tasks
	tails   *tails
}

// NewHandler makes the handler of everything below /cluster/.
func NewHandler(o HandlerOptions) (*Handler, error) {
	if o.Local == nil || o.Outputs == nil || o.Secret == "" {
		return nil, errors.New("peers: Local, Outputs and Secret must be set")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Handler{HandlerOptions: o, secret: sha256.Sum256([]byte(o.Secret)), tails: newTails(o.Outputs),
		streams: make(chan struct{}, maxStreams), creates: make(chan struct{}, maxCreates)}, nil
}

// method is one thing that servers ask of each other. What it needs is in the request; its error travels as it is.
type method func(h *Handler, ctx context.Context, q *request, tasks []*dts.Task) (*answer, error)

var methods = map[string]method{
	"Notice":            (*Handler).notice,
	"CreateTasks":       (*Handler).createTasks,
	"ModifyTask":        (*Handler).modifyTask,
	"DoTask":            (*Handler).doTask,
	"Bulk":              (*Handler).bulk,
	"AddDependencies":   (*Handler).addDependencies,
	"RemoveDependency":  (*Handler).removeDependency,
	"CreateRecurring":   (*Handler).createRecurring,
	"ModifyRecurring":   (*Handler).modifyRecurring,
	"PauseRecurring":    (*Handler).pauseRecurring,
	"ResumeRecurring":   (*Handler).resumeRecurring,
	"CancelRecurring":   (*Handler).cancelRecurring,
	"TriggerRecurring":  (*Handler).triggerRecurring,
	"BackfillRecurring": (*Handler).backfillRecurring,
	"FindOutput":        (*Handler).findOutput,
	"ReadOutput":        (*Handler).readOutput,
	"Clock":             (*Handler).clock,
	"QueueLoads":        (*Handler).queueLoads,
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.known(r) {
		h.Log.Debug("server refused: it does not know the secret", "address", r.RemoteAddr)
		h.refuse(w, http.StatusUnauthorized, "this needs the cluster's secret")
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		h.refuse(w, http.StatusMethodNotAllowed, "this takes POST")
		return
	}
	if v := r.Header.Get(headerProtocol); v != protocol {
		h.refuse(w, http.StatusBadRequest, "this server speaks version %s of the protocol between servers, not %q; run the same version of dts everywhere", protocol, clip(v, 20))
		return
	}
	if to, self := r.Header.Get(headerTo), h.Local.Placement().Self; to != self {
		h.refuse(w, http.StatusMisdirectedRequest, "this is the server %s, not %q", self, clip(to, 50))
		return
	}
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(serveTime)) // or the server's limit, for shorter requests, ends the wait
	switch r.URL.Path {
	case callPath:
		h.call(w, r)
	case eventsPath:
		h.events(w, r)
	default:
		h.refuse(w, http.StatusNotFound, "there is nothing at this path")
	}
}

// known reports whether the request comes from a server of the cluster.
func (h *Handler) known(r *http.Request) bool {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(secret))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], h.secret[:]) == 1
}

// refuse answers a call that was not looked at. The status is below 500: see Client.post.
func (h *Handler) refuse(w http.ResponseWriter, status int, format string, args ...any) {
	http.Error(w, fmt.Sprintf(format, args...), status)
}

// call answers one call.
func (h *Handler) call(w http.ResponseWriter, r *http.Request) {
	name := r.Header.Get(headerMethod)
	do, ok := methods[name]
	if !ok {
		h.refuse(w, http.StatusNotFound, "this server does not know the method %q; run the same version of dts everywhere", clip(name, 50))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), serveTime)
	defer cancel()
	limit := int64(maxCall)
	if name == "CreateTasks" {
		limit = maxCreate
		select {
		case h.creates <- struct{}{}:
			defer func() { <-h.creates }()
		case <-ctx.Done():
			h.refuse(w, http.StatusTooManyRequests, "too many tasks are being created")
			return
		}
	}
	if !h.limited(w, r, limit) {
		return
	}
	q, tasks, err := decode(r.Body)
	if err != nil {
		status := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large || dts.CodeOf(err) == dts.ErrTooLarge {
			status = http.StatusRequestEntityTooLarge
		}
		h.refuse(w, status, "the call %s cannot be read: %v", name, err)
		return
	}
	a, err := do(h, ctx, q, tasks)
	if err != nil {
		a = &answer{Failure: failureOf(err)}
		if a.Failure.Code == dts.ErrInternal {
			h.Log.Error("call of another server failed", "method", name, "error", err)
		}
	}
	w.Header().Set("Content-Type", gobType)
	w.Header().Set("Cache-Control", "no-store")
	gob.NewEncoder(w).Encode(a) // an error means that the caller has gone
}

// limited refuses a body that is larger than the limit, as far as that is said, and cuts it off there.
func (h *Handler) limited(w http.ResponseWriter, r *http.Request, limit int64) bool {
	if r.ContentLength > limit {
		h.refuse(w, http.StatusRequestEntityTooLarge, "the call has %d bytes; at most %d are possible", r.ContentLength, limit)
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	return true
}

func (h *Handler) notice(_ context.Context, q *request, _ []*dts.Task) (*answer, error) {
	if q.Poke {
		h.Local.Poke()
	}
	ids := make([]string, 0, min(len(q.IDs), maxNotices))
	for _, id := range q.IDs[:min(len(q.IDs), maxNotices)] {
		if dts.IsID(id) {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		h.Local.Wake(ids)
	}
	return &answer{}, nil
}

func (h *Handler) createTasks(ctx context.Context, _ *request, tasks []*dts.Task) (*answer, error) {
	if len(tasks) == 0 {
		return nil, errIncomplete
	}
	// The caller may have asked another server before, whose answer it never got, and which may still be at it. Under
	// one id each of the two would take the task for its own, and run it. Their key tells which of two ids is the task.
	fresh := make(map[string]string, len(tasks))
	for _, t := range tasks {
		id := dts.NewID(time.Now())
		fresh[t.ID], t.ID = id, id
	}
	for _, t := range tasks {
		for i, d := range t.DependsOn {
			if id := fresh[d.TaskID]; id != "" {
				t.DependsOn[i].TaskID = id
			}
		}
	}
	list, err := h.Local.CreateTasks(ctx, tasks)
	if err != nil {
		return nil, err
	}
	a := &answer{Made: make([]made, len(list))}
	for i, c := range list {
		a.Made[i] = made{c.Item.ID, c.Existed, c.Item.Shard, c.Item.Seq}
	}
	return a, nil
}

// errIncomplete is the answer to a call that lacks what its method needs.
var errIncomplete = dts.Errorf(dts.ErrInternal, "a server has sent a call without what belongs to it")

func (h *Handler) modifyTask(ctx context.Context, q *request, _ []*dts.Task) (*answer, error) {
	if q.TaskPatch == nil {
		return nil, errIncomplete
	}
	p := q.TaskPatch
	restore(&p.Value, p.Empty)
	_, err := h.Local.ModifyTask(ctx, q.Tenant, q.ID, p.Value)
	return &answer{}, err
}

func (h *Handler) doTask(ctx context.Context, q *request, _ []*dts.Task) (*answer, error) {
	_, err := h.Local.DoTask(ctx, q.Tenant, q.ID, q.Verb, q.Actor)
	return &answer{}, err
}

// bulk answers with a result and a failure: what was done before the error stays done.
func (h *Handler) bulk(ctx context.Context, q *request, _ []*dts.Task) (*answer, error) {
	r, err := h.Local.Bulk(ctx, q.Bulk)
	a := &answer{Bulk: r}
	if err != nil {
		a.Failure = failureOf(err)
	}
	return a, nil
}

func (h *Handler) createRecurring(ctx context.Context, q *request, _ []*dts.Task) (*answer, error) {
	if q.Recurring == nil {
		return nil, errIncomplete
	}
	f := q.Recurring
	restore(&f.Value, f.Empty)
	f.Value.ID = "" // as for tasks: it gets one of its own here
	c, err := h.Local.CreateRecurring(ctx, &f.Value)
	if err != nil {
		return nil, err
	}
	return &answer{Made: []made{{ID: c.Item.ID, Existed: c.Existed, Shard: c.Item.Shard}}}, nil
}

func (h *Handler) modifyRecurring(ctx context.Context, q *request, _ []*dts.Task) (*answer, error) {
	if q.RecurringPatch == nil {
		return nil, errIncomplete
	}
	p := q.RecurringPatch
	restore(&p.Value, p.Empty)
	_, err := h.Local.ModifyRecurring(ctx, q.Tenant, q.ID, p.Value)
	return &answer{}, err
}

func (h *Handler) pauseRecurring(ctx context.Context, q *request, _ []*dts.Task) (*answer, error) {
	_, err := h.Local.PauseRecurring(ctx, q.Tenant, q.ID, q.Until, q.Note, q.Actor)
	return &answer{}, err
}

func (h *Handler) resumeRecurring(ctx context.Context, q *request, _ []*dts.Task) (*answer, error) {
	_, err := h.Local.ResumeRecurring(ctx, q.Tenant, q.ID, q.CatchUp, q.Actor)
	return &answer{}, err
}

func (h *Handler) cancelRecurring(ctx context.Context, q *request, _ []*dts.Task) (*answer, error) {
	_, err := h.Local.CancelRecurring(ctx, q.Tenant, q.ID, q.Actor)
	return &answer{}, err
}

func (h *Handler) triggerRecurring(ctx context.Context, q *request, _ []*dts.Task) (*answer, error) {
	t, err := h.Local.TriggerRecurring(ctx, q.Tenant, q.ID, q.Actor)
	if err != nil {
		return nil, err
	}
	return &answer{ID: t.ID}, nil
}

func (h *Handler) backfillRecurring(ctx context.Context, q *request, _ []*dts.Task) (*answer, error) {
	b, err := h.Local.BackfillRecurring(ctx, q.Tenant, q.ID, q.Backfill, q.Actor)
	if err != nil {
		return nil, err
	}
	return &answer{Backfill: *b}, nil
}
