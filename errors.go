package dts

import (
	"errors"
	"fmt"
	"strings"
)

// Code classes an error by what the caller can do about it. The web maps each code to one HTTP status.
type Code string

const (
	ErrInvalid      Code = "invalid"      // the input is wrong; Fields says where
	ErrUnauthorized Code = "unauthorized" // no or wrong credential
	ErrForbidden    Code = "forbidden"    // the credential does not allow it
	ErrNotFound     Code = "not_found"    // no such thing in this tenant
	ErrConflict     Code = "conflict"     // the thing's state does not allow it
	ErrTooLarge     Code = "too_large"    // a body or a list beyond its limit
	ErrFull         Code = "full"         // the disk is full; nothing was changed
	ErrUnavailable  Code = "unavailable"  // try again later; nothing was changed
	ErrUnknown      Code = "unknown"      // the outcome is unknown; ask again with the same idempotency key
	ErrInternal     Code = "internal"     // a fault in dts
	ErrElsewhere    Code = "elsewhere"    // another server is responsible; servers tell it each other, never a user
)

// FieldError is one thing that is wrong with one field of a request.
type FieldError struct {
	Field   string `json:"field" doc:"path of the field, for example target_config.url or tasks[3].run_at"`
	Message string `json:"message" doc:"what is wrong and what would be right"`
}

// Error is an error meant for a user. Its text never holds a secret.
type Error struct {
	Code    Code
	Message string
	Fields  []FieldError
	Err     error // the cause, for the log; not shown to users
}

func (e *Error) Error() string {
	if len(e.Fields) == 0 {
		return e.Message
	}
	parts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = f.Field + ": " + f.Message
	}
	if e.Message == "" {
		return strings.Join(parts, "; ")
	}
	return e.Message + ": " + strings.Join(parts, "; ")
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error without fields.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Invalid makes an ErrInvalid error about one field.
func Invalid(field, format string, args ...any) *Error {
	return &Error{Code: ErrInvalid, Message: "the request is not valid", Fields: []FieldError{{field, fmt.Sprintf(format, args...)}}}
}

// CodeOf returns the code of err: "" for nil, ErrInternal for an error that is not an Error.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ErrInternal
}

// fieldErrors collects what is wrong with a request, to tell it all at once.
type fieldErrors struct {
	prefix string
	list   []FieldError
}

func (f *fieldErrors) add(field, format string, args ...any) {
	f.list = append(f.list, FieldError{f.prefix + field, fmt.Sprintf(format, args...)})
}

// merge adds the fields of err, an *Error, under this prefix.
func (f *fieldErrors) merge(field string, err error) {
	if err == nil {
		return
	}
	var e *Error
	if errors.As(err, &e) && len(e.Fields) > 0 {
		for _, x := range e.Fields {
			f.list = append(f.list, FieldError{f.prefix + field + x.Field, x.Message})
		}
		return
	}
	f.add(strings.TrimSuffix(field, "."), "%s", err)
}

func (f *fieldErrors) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return &Error{Code: ErrInvalid, Message: "the request is not valid", Fields: f.list}
}
