package taskfile

import (
	"go.yaml.in/yaml/v4"
)

// follow returns the node that an alias stands for, and what to call when it has been read. It refuses a value that
// is nested too deeply, which an alias within itself is, and one too many that is read again.
func (r *reader) follow(n *yaml.Node, depth int) (*yaml.Node, func(), bool) {
	done := func() {}
	if depth > maxDepth {
		r.add(posOf(n), "is nested more than %d deep", maxDepth)
		return n, done, false
	}
	if n.Kind == yaml.AliasNode {
		r.again++
		done = func() { r.again-- }
		n = n.Alias
	}
	if r.again > 0 || r.muted {
		if r.repeats++; r.repeats > maxRepeats {
			if r.repeats == maxRepeats+1 {
				was := r.muted
				r.muted = false
				r.add(posOf(n), "aliases and defaults repeat more than %d values", maxRepeats)
				r.muted = was
			}
			return n, done, false
		}
	}
	return n, done, true
}

// member is one entry of a mapping.
type member struct {
	name  string
	key   *yaml.Node
	value *yaml.Node
}

// members lists the entries of a mapping, each key once: its own, and those that it takes from others by <<.
func (r *reader) members(n *yaml.Node, depth int) []member {
	var list []member
	seen := map[string]Pos{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		switch {
		case k.Kind != yaml.ScalarNode:
			r.add(posOf(k), "a key must be a text, not %s", kindOf(k))
			continue
		case k.ShortTag() == "!!merge":
			merged = append(merged, v)
			continue
		}
		if first, twice := seen[k.Value]; twice {
			r.add(posOf(k), "%s is there twice, first in line %d", quote(k.Value), first.Line)
			continue
		}
		seen[k.Value] = posOf(k)
		list = append(list, member{k.Value, k, v})
	}
	for _, m := range merged {
		for _, x := range r.mergedMembers(m, depth+1) {
			if _, own := seen[x.name]; !own {
				seen[x.name] = posOf(x.key)
				list = append(list, x)
			}
		}
	}
	return list
}

// mergedMembers lists what << takes over: the entries of a mapping, or of several of which the first counts.
func (r *reader) mergedMembers(n *yaml.Node, depth int) []member {
	n, done, ok := r.follow(n, depth)
	defer done()
	switch {
	case !ok:
		return nil
	case n.Kind == yaml.MappingNode:
		list := r.members(n, depth)
		r.repeats += len(list)
		return list
	case n.Kind == yaml.SequenceNode:
		var all []member
		seen := map[string]bool{}
		for _, item := range n.Content {
			for _, m := range r.mergedMembers(item, depth+1) {
				if !seen[m.name] {
					seen[m.name] = true
					all = append(all, m)
				}
			}
		}
		return all
	}
	r.add(posOf(n), "<< takes over a mapping, and this is %s", kindOf(n))
	return nil
}
