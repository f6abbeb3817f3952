package api

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"dts"
)

const jsonType = "application/json"

func documentConfig(version string) huma.Config {
	c := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{Title: "dts", Version: version,
				Description: "A task scheduler. Times are RFC 3339, errors RFC 9457 problems, lists come in pages with a cursor."},
			Servers: []*huma.Server{{URL: "/"}, {URL: "/v1"}},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token":   {Type: "http", Scheme: "bearer", Description: "an API token"},
					"session": {Type: "apiKey", In: "cookie", Name: "dts_session", Description: "the page's session"},
				},
			},
			Security: []map[string][]string{{"token": {}}, {"session": {}}},
		},
		Formats:       map[string]huma.Format{jsonType: huma.DefaultJSONFormat},
		DefaultFormat: jsonType,
	}
	c.AllowAdditionalPropertiesByDefault = true // answers may grow; requests are closed below
	return c
}

// document describes a route as an OpenAPI operation.
func (h *Handler) document(r *route) *huma.Operation {
	op := &huma.Operation{
		OperationID: r.id, Method: r.method, Path: r.path, Summary: r.summary, Tags: []string{r.tag},
		Responses: map[string]*huma.Response{},
	}
	if strings.Contains(r.path, "{id}") {
		op.Parameters = append(op.Parameters, &huma.Param{Name: "id", In: "path", Required: true,
			Schema: &huma.Schema{Type: huma.TypeString, Format: "uuid"}})
	}
	if strings.Contains(r.path, "{name}") {
		op.Parameters = append(op.Parameters, &huma.Param{Name: "name", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}})
	}
	for _, p := range r.params {
		op.Parameters = append(op.Parameters, &huma.Param{Name: p.name, In: p.in, Description: p.doc, Required: p.in == "path", Schema: p.schema})
	}
	if r.body != nil {
		op.RequestBody = &huma.RequestBody{Required: !r.bodyOptional,
			Content: map[string]*huma.MediaType{jsonType: {Schema: h.requestSchema(reflect.TypeOf(r.body))}}}
		if r.bodyMedia != "" {
			op.RequestBody.Content[r.bodyMedia] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
		}
	}
	content := map[string]*huma.MediaType{}
	if r.answer != nil {
		content[jsonType] = &huma.MediaType{Schema: h.schema(reflect.TypeOf(r.answer))}
	}
	if r.media != "" {
		content[r.media] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	}
	if len(r.events) > 0 {
		data := &huma.Schema{Description: "server-sent events; this is the data of one of them"}
		for _, e := range r.events {
			data.OneOf = append(data.OneOf, h.schema(reflect.TypeOf(e)))
		}
		content["text/event-stream"] = &huma.MediaType{Schema: data}
	}
	op.Responses[strconv.Itoa(r.status)] = &huma.Response{Description: http.StatusText(r.status), Content: content}
	if r.also != 0 {
		op.Responses[strconv.Itoa(r.also)] = &huma.Response{Description: http.StatusText(r.also), Content: content}
	}
	codes := append([]int{}, r.errors...)
	if r.open {
		op.Security = []map[string][]string{{}}
	} else {
		codes = append(codes, http.StatusUnauthorized)
	}
	if r.body != nil {
		codes = append(codes, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if r.body != nil || len(r.params) > 0 {
		codes = append(codes, http.StatusUnprocessableEntity)
	}
	if strings.Contains(r.path, "{id}") || strings.Contains(r.path, "{name}") && r.method != http.MethodPut {
		codes = append(codes, http.StatusNotFound)
	}
	if r.method != http.MethodGet {
		codes = append(codes, http.StatusInsufficientStorage, http.StatusServiceUnavailable)
	}
	problem := map[string]*huma.MediaType{ProblemType: {Schema: h.schema(reflect.TypeFor[Problem]())}}
	for _, code := range codes {
		op.Responses[strconv.Itoa(code)] = &huma.Response{Description: http.StatusText(code), Content: problem}
	}
	op.Responses["default"] = &huma.Response{Description: "Error", Content: problem}
	return op
}

// onlyIn are the parts of requests in which unknown fields are refused, as in the bodies themselves.
var onlyIn = []string{"HTTPTarget", "CommandTarget", "WorkflowTarget", "BackupTarget", "PingTarget", "Step", "StepDependsOn", "Retry", "TaskFilter", "Holidays", "WindowRequest"}

// schema returns a reference to a type's schema. Where a type has a target_config it says what that is.
func (h *Handler) schema(t reflect.Type) *huma.Schema {
	reg := h.huma.OpenAPI().Components.Schemas
	s := reg.Schema(t, true, "")
	target := &huma.Schema{
		Description: "an HTTPTarget for HTTP_CALLBACK, a CommandTarget for COMMAND, a WorkflowTarget for WORKFLOW, a BackupTarget for BACKUP, a PingTarget for PING",
		OneOf: []*huma.Schema{
			reg.Schema(reflect.TypeFor[dts.HTTPTarget](), true, ""),
			reg.Schema(reflect.TypeFor[dts.CommandTarget](), true, ""),
			reg.Schema(reflect.TypeFor[dts.WorkflowTarget](), true, ""),
			reg.Schema(reflect.TypeFor[dts.BackupTarget](), true, ""),
			reg.Schema(reflect.TypeFor[dts.PingTarget](), true, ""),
		},
	}
	for name, known := range reg.Map() {
		if _, ok := known.Properties["target_config"]; ok {
			known.Properties["target_config"] = target
		}
		if p, ok := known.Properties["depends_on"]; ok && (name == "Step" || name == "StepState") {
			if name == "Step" {
				known.Properties["name"].Description = "1 to 100 letters, digits, '_', '-' and '.'; the steps of a workflow have different ones"
				known.Properties["queue"].Description, known.Properties["priority"].Description = "default: that of the workflow", "default: that of the workflow"
			}
			p.Items = &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString, Description: "the step's name, for MUST_SUCCEED"},
				reg.Schema(reflect.TypeFor[dts.StepDependsOn](), true, "")}}
		}
		for _, p := range known.Properties {
			if p.Type == huma.TypeArray {
				p.Nullable = false // an empty list is [], never null
			}
		}
		if slices.Contains(onlyIn, name) {
			known.AdditionalProperties = false
		}
	}
	return s
}

// requestSchema is schema for a request's body, which may not have other fields.
func (h *Handler) requestSchema(t reflect.Type) *huma.Schema {
	s := h.schema(t)
	h.huma.OpenAPI().Components.Schemas.SchemaFromRef(s.Ref).AdditionalProperties = false
	return s
}
