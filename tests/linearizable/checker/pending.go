package main

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// An unanswered write whose version nobody saw may have taken effect at any time after its start,
// or never. As operations without an end, n of these would make porcupine try up to 2^n sets. They
// are therefore kept beside the state, not given to porcupine: a step that is not possible in a
// state may be possible after some of them, and these are used up then.
//
// Using them only where a step needs them loses no explanation. If a step is possible without them
// and only reads, they can come after it as well. If it writes, their effect is lost anyway.
//
// Several unanswered writes may help the same step. Each choice is a config, and configs are
// followed side by side. The first search follows only a few. A history that it explains is
// linearizable; one that it does not explain is searched again with more configs.

// class has unanswered writes that no answer can tell apart: deletes, and versions that nobody saw.
// The earliest is used first: at any later moment the others are available too.
type class []*step

// classes separates the unanswered writes of a key from its other operations.
func (facts *facts) classes(operations []porcupine.Operation) ([]porcupine.Operation, []class) {
	var others []porcupine.Operation
	var classes []class
	numbers := map[string]int{}
	for _, operation := range operations {
		step := operation.Input.(*step)
		if operation.Return != never {
			others = append(others, operation)
			continue
		}
		name := facts.className(step)
		number, known := numbers[name]
		if !known {
			number = len(classes)
			numbers[name] = number
			classes = append(classes, nil)
		}
		classes[number] = append(classes[number], step)
	}
	return others, classes
}

func (facts *facts) className(step *step) string {
	if step.action == write && (step.line.Op == "copy" || facts.isSeen(step.line.Makes)) {
		return fmt.Sprintf("%d %d", step.line.Start, step.line.Client)
	}
	return fmt.Sprintf("%v %v %s", step.action, step.ifAbsent, step.ifMatch)
}

// isSeen reports whether an answer may show a version. Empty versions share their ETag.
func (facts *facts) isSeen(makes *Version) bool {
	return makes.Size != nil && *makes.Size == 0 || facts.firstSeen(makes) != never
}

// config is a state, and the unanswered writes that were used to reach it.
type config struct {
	state state
	// The earliest moment that it can be reached.
	time int64
	// The number of used writes in each class, and their sum.
	used []int
	sum  int
}

// dominates reports whether everything that can follow the other config can follow this one.
func (one config) dominates(other config) bool {
	if one.state != other.state || one.time > other.time {
		return false
	}
	for number, used := range one.used {
		if used > other.used[number] {
			return false
		}
	}
	return true
}

// register is the model of a key. Its states are sets of configs.
type register struct {
	facts   *facts
	classes []class
	// width is the number of configs that are kept, those that used the fewest writes; leaves is
	// whether others were left out.
	width  int
	leaves bool
}

func (register *register) model(initial state) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return []config{{initial, -1, make([]int, len(register.classes)), 0}} },
		Step: func(before, input, _ any) (bool, any) {
			var after []config
			for _, one := range before.([]config) {
				after = register.step(after, one, input.(*step))
			}
			if len(after) > register.width {
				slices.SortStableFunc(after, func(one, other config) int { return one.sum - other.sum })
				after, register.leaves = after[:register.width], true
			}
			return len(after) > 0, after
		},
		// Porcupine asks whether it was here before. It was if each config is dominated.
		Equal: func(now, earlier any) bool {
			for _, one := range now.([]config) {
				if !covered(earlier.([]config), one) {
					return false
				}
			}
			return true
		},
		DescribeOperation: func(input, _ any) string { return input.(*step).String() },
		DescribeState: func(of any) string {
			text := of.([]config)[0].state.String()
			if more := len(of.([]config)) - 1; more > 0 {
				text += fmt.Sprintf(" or %d others", more)
			}
			return text
		},
	}
}

func covered(by []config, one config) bool {
	return slices.ContainsFunc(by, func(other config) bool { return other.dominates(one) })
}

// step adds the configs that may follow a step.
func (register *register) step(found []config, before config, step *step) []config {
	if before.time > step.end {
		return found
	}
	after, ok := register.facts.apply(before.state, step)
	if ok {
		found = put(found, config{after, max(before.time, step.line.Start), before.used, before.sum})
		if before.state.origin == "" {
			return found
		}
		// The version of an unresolved copy may also be another than this answer suggests.
	}
	return register.helped(found, before, step, step.end)
}

// helped adds the configs that may follow a step when unanswered writes before it make it possible.
func (register *register) helped(found []config, before config, goal *step, end int64) []config {
	for number, members := range register.classes {
		if before.used[number] == len(members) {
			continue
		}
		last := members[before.used[number]]
		if last.line.Start > end {
			continue
		}
		made := last.makes
		if last.action == remove {
			made = state{}
		}
		after, ok := register.facts.apply(made, goal)
		if !ok {
			continue
		}
		used := slices.Clone(before.used)
		used[number]++
		helper := config{before.state, max(before.time, last.line.Start), used, before.sum + 1}
		for _, ready := range register.satisfied(helper, last, end) {
			found = put(found, config{after, max(ready.time, goal.line.Start), ready.used, ready.sum})
		}
	}
	return found
}

// satisfied gives the configs in which the condition of an unanswered write is true.
func (register *register) satisfied(before config, pending *step, end int64) []config {
	needs := *pending
	needs.answer = accepted
	if !pending.ifAbsent && pending.ifMatch == "" {
		return []config{before}
	}
	if _, ok := register.facts.condition(before.state, &needs); ok {
		return []config{before}
	}
	return register.helped(nil, before, &needs, end)
}

// put adds a config that none of the others dominates.
func put(found []config, one config) []config {
	if covered(found, one) {
		return found
	}
	return append(slices.DeleteFunc(found, one.dominates), one)
}
