package api

import (
	"errors"
	"net/http"

	"dts"
	"dts/web/auth"
)

func (h *Handler) stats(c *call) (any, error) { return h.Store.Counts(c, c.p.TenantID) }

func (h *Handler) schedulerStatus(*call) (any, error) { return h.Scheduler.Status(), nil }

func (h *Handler) health(*call) (any, error) { return Health{Status: "ok"}, nil }

// ready says why the node is not ready in the scheduler's words for users; those of an error that is not
// a dts.Error stay here.
func (h *Handler) ready(c *call) (any, error) {
	err := h.Scheduler.Ready()
	if err == nil {
		return Readiness{Ready: true}, nil
	}
	c.status = http.StatusServiceUnavailable
	reasons := h.Scheduler.Status().NotReady
	if len(reasons) == 0 {
		reasons = []string{"not ready"}
		if e, ok := errors.AsType[*dts.Error](err); ok && e.Code != dts.ErrInternal {
			reasons = []string{e.Message}
		}
	}
	return Readiness{Reasons: reasons}, nil
}

func (h *Handler) reload(c *call) (any, error) {
	if !c.p.Admin {
		return nil, dts.Errorf(dts.ErrForbidden, "only an admin may let a server read its settings again")
	}
	if h.Reload == nil {
		return nil, dts.Errorf(dts.ErrConflict, "this server has no settings that it could read again")
	}
	list, err := h.Reload()
	if err != nil {
		return nil, err
	}
	return Reloaded{Changes: list}, nil
}

func (h *Handler) metrics(c *call, w http.ResponseWriter) error {
	h.Metrics.ServeHTTP(w, c.r)
	return nil
}

func (h *Handler) openAPI(_ *call, w http.ResponseWriter) error {
	b, err := h.spec()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/openapi+json")
	w.Write(b)
	return nil
}

func (h *Handler) createLoginLink(c *call) (any, error) {
	if h.LoginURL("") == "" {
		return nil, dts.Errorf(dts.ErrConflict, "this server has no page to sign in to: it does not listen on TCP")
	}
	token, err := h.Tokens.NewLoginLink(c, c.p, auth.LinkTTL)
	if err != nil {
		return nil, err
	}
	return LoginLink{URL: h.LoginURL(token), ExpiresAt: dts.Micros(h.Now().Add(auth.LinkTTL))}, nil
}
