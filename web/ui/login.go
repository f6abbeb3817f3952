package ui

import (
	"net/http"
	"net/url"
	"strings"

	"dts"
	"dts/web/auth"
)

type loginPage struct {
	shared
	Next  string
	Error string
}

// loginPage asks for a token.
func (h *handler) loginPage(w http.ResponseWriter, r *http.Request) error {
	if _, ok := auth.From(r.Context()); ok {
		http.Redirect(w, r, "/ui/", http.StatusSeeOther)
		return nil
	}
	d := loginPage{shared: h.shared(r, ""), Next: localPath(r.URL.Query().Get("next"))}
	return h.render(w, http.StatusOK, "login", d)
}

// login checks the token and starts a session. The token itself never becomes a cookie.
func (h *handler) login(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	next := localPath(r.PostForm.Get("next"))
	p, err := h.Tokens.Authenticate(r.Context(), strings.TrimSpace(r.PostForm.Get("token")))
	if dts.CodeOf(err) == dts.ErrUnauthorized {
		h.Log.Warn("sign-in refused", "remote", r.RemoteAddr)
		d := loginPage{shared: h.shared(r, ""), Next: next,
			Error: "This token is not known. Copy the whole line, and check that it has not been revoked."}
		return h.render(w, http.StatusUnauthorized, "login", d)
	}
	if err != nil {
		return err
	}
	return h.startSession(w, r, p, next)
}

// link spends a one-time link. A HEAD request, with which some programs look at a link before they open
// it, does not spend it.
func (h *handler) link(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return nil
	}
	p, err := h.Tokens.RedeemLoginLink(r.Context(), r.URL.Query().Get("code"))
	if dts.CodeOf(err) == dts.ErrUnauthorized {
		d := loginPage{shared: h.shared(r, ""), Next: "/ui/"}
		d.Alert = "This link has been used or is too old. Run dts ui again for a new one."
		return h.render(w, http.StatusUnauthorized, "login", d)
	}
	if err != nil {
		return err
	}
	return h.startSession(w, r, p, "/ui/")
}

func (h *handler) startSession(w http.ResponseWriter, r *http.Request, p auth.Principal, next string) error {
	session, err := h.Tokens.NewSession(r.Context(), p, auth.SessionTTL)
	if err != nil {
		return err
	}
	auth.SetCookie(w, r, session, auth.SessionTTL)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// logout ends the session on the server as well as in the browser.
func (h *handler) logout(w http.ResponseWriter, r *http.Request) error {
	if c, err := r.Cookie(auth.Cookie); err == nil {
		if err := h.Tokens.EndSession(r.Context(), c.Value); err != nil {
			return err
		}
	}
	auth.ClearCookie(w, r)
	http.Redirect(w, r, "/ui/login", http.StatusSeeOther)
	return nil
}

// badForm is the error for a body that is not a form.
func badForm(err error) error {
	return &dts.Error{Code: dts.ErrInvalid, Message: "the form could not be read", Err: err}
}

// withQuery adds one parameter to a path.
func withQuery(path, key, value string) string {
	mark := "?"
	if strings.Contains(path, "?") {
		mark = "&"
	}
	return path + mark + key + "=" + url.QueryEscape(value)
}
