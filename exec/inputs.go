package exec

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"dts"
)

// filled returns the task's target with what it gets of the output of others in its places: in the URL as part of a query.
func filled(spec *dts.Spec, inputs map[string]string) (*dts.Spec, error) {
	c, err := spec.HTTP()
	if err != nil {
		return nil, fmt.Errorf("the target_config is not valid: %w", err)
	}
	c.URL = dts.FillInputs(c.URL, inputs, url.QueryEscape)
	c.Body = dts.FillInputs(c.Body, inputs, nil)
	for name, value := range c.Headers {
		c.Headers[name] = dts.FillInputs(value, inputs, nil)
	}
	s := *spec
	s.TargetConfig, err = json.Marshal(c)
	return &s, err
}

// inputVariables returns what a command gets of the output of others as part of its environment.
func inputVariables(inputs map[string]string) (env []string) {
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		env = append(env, dts.InputVariable(name)+"="+inputs[name])
	}
	return env
}
