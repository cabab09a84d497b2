package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// What a resource is configured with, or what was read of it.
type attributes map[string]any

// A set has its members in order.
type set []string

func setOf(members ...string) set {
	all := append(set{}, members...)
	slices.Sort(all)
	return all
}

// minus has the members of one set that another has not.
func (all set) minus(others set) []string {
	left := []string{}
	for _, member := range all {
		if !slices.Contains(others, member) {
			left = append(left, member)
		}
	}
	return left
}

type tags map[string]string

func tagsOf(found []types.Tag) tags {
	read := tags{}
	for _, tag := range found {
		read[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return read
}

// list is what an action gets.
func (wanted tags) list() []types.Tag {
	all := []types.Tag{}
	for key, value := range wanted {
		all = append(all, types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	return all
}

// retag changes tags as the provider does before anything else of an update: first it takes away
// those that are no longer wanted, then it puts those that are new or have another value.
func retag(old, wanted attributes, untag func([]string), tag func([]types.Tag)) {
	before, after := old["tags"].(tags), wanted["tags"].(tags)
	removed, put := []string{}, tags{}
	for key := range before {
		if _, ok := after[key]; !ok {
			removed = append(removed, key)
		}
	}
	for key, value := range after {
		if was, ok := before[key]; !ok || was != value {
			put[key] = value
		}
	}
	if len(removed) > 0 {
		untag(removed)
	}
	if len(put) > 0 {
		tag(put.list())
	}
}

// text is an attribute that is a text, and nil where it is empty: it is not sent then.
func (all attributes) text(name string) *string {
	if value, ok := all[name].(string); ok && value != "" {
		return &value
	}
	return nil
}

// changed says whether an update has to do with one of these.
func changed(old, wanted attributes, names ...string) bool {
	for _, name := range names {
		if !same(old[name], wanted[name]) {
			return true
		}
	}
	return false
}

func same(one, other any) bool {
	switch one := one.(type) {
	case document:
		other, ok := other.(document)
		return ok && one.equals(other)
	case inline:
		other, ok := other.(inline)
		return ok && one.equals(other)
	}
	return reflect.DeepEqual(one, other)
}

// differences between what should be there and what is, of the attributes that the first has.
func differences(wanted, found attributes) []string {
	all := []string{}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !same(wanted[name], found[name]) {
			all = append(all, fmt.Sprintf("%s is %#v, not %#v", name, found[name], wanted[name]))
		}
	}
	return all
}

// mustHave fails unless all that is wanted was read.
func mustHave(wanted, found attributes) {
	if found == nil {
		fail("it is not there")
	}
	if wrong := differences(wanted, found); len(wrong) > 0 {
		fail("%v", wrong)
	}
}

// A life is what the provider does for a resource.
type life struct {
	// What it is configured with, one after the other.
	stages []attributes
	// Returns the id by which the others know it.
	create func(wanted attributes) string
	// Nil where it is gone.
	read   func(id string) attributes
	update func(id string, old, wanted attributes) string
	// Gets what was read last.
	destroy func(id string, state attributes)
	// What an import calls before it reads; nil where there is no import.
	imports func(id string)
	// What happens outside of Terraform before the end.
	meanwhile func(id string)
}

// Computed attributes that stay as they are whatever is changed.
var fixed = []string{"unique_id", "policy_id", "create_date"}

func (l life) run() {
	var id string
	var state attributes
	refresh := func(wanted attributes) {
		before := state
		state = l.read(id)
		mustHave(wanted, state)
		for _, name := range fixed {
			if before != nil && !same(before[name], state[name]) {
				fail("%s was %v and is %v", name, before[name], state[name])
			}
		}
	}
	plan := func(wanted attributes) {
		read := l.read(id)
		mustHave(wanted, read)
		mustHave(state, read)
		if len(read) != len(state) {
			fail("%v was read, then %v", state, read)
		}
	}
	step("apply", func() { id = l.create(l.stages[0]); refresh(l.stages[0]) })
	step("plan without a change", func() { plan(l.stages[0]) })
	for number, wanted := range l.stages[1:] {
		step(fmt.Sprintf("change %d", number+1), func() {
			id = l.update(id, l.stages[number], wanted)
			refresh(wanted)
		})
		step(fmt.Sprintf("plan after change %d", number+1), func() { plan(wanted) })
	}
	last := l.stages[len(l.stages)-1]
	if l.imports != nil {
		step("import", func() { l.imports(id); plan(last) })
	}
	if l.meanwhile != nil {
		step("meanwhile", func() { l.meanwhile(id) })
	}
	step("destroy", func() {
		mustHave(last, l.read(id))
		l.destroy(id, state)
	})
	step("plan after another has destroyed it", func() {
		if left := l.read(id); left != nil {
			fail("there still is %v", left)
		}
	})
	step("destroy what is gone", func() { l.destroy(id, state) })
}
