package main

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// A write that was not answered, and whose version nobody saw, may have taken effect at any time after its start,
// or never. To porcupine each of these would be an operation without an end, and of n of them it would try up to
// 2^n sets. So they are no operations here, but kept beside the state: a step that is not possible in a state may
// be possible after some of them, which are used up by that.
//
// To use them only where they are needed leaves out no explanation. If a step is possible without them, and
// changes nothing, they may as well come after it; if it is a write, their effect is lost with it.

// Where several can help, the ways are followed side by side. There may be very many, so that only some are
// followed at first: what is explained in spite of that is explained, what is not is tried again with more of them.

// class has unanswered writes of which one is as good as the other: versions that nobody saw, and deletions. The
// earliest is used first, since later ones are as free from then on.
type class []*step

// classes sorts the unanswered writes among the operations of a key, and gives all other operations.
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

// isSeen reports whether an answer may show a version. The bytes of empty ones belong to many.
func (facts *facts) isSeen(makes *Version) bool {
	return makes.Size != nil && *makes.Size == 0 || facts.firstSeen(makes) != never
}

// config is a state with what it took to come there.
type config struct {
	state state
	// It is not earlier than this.
	time int64
	// For each class how many of it are used up, and the sum.
	used []int
	sum  int
}

// dominates reports whether all that is possible after another is possible after this one.
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

// register is the model of a key: states are sets of configs.
type register struct {
	facts   *facts
	classes []class
	// At most so many configs are kept, those that used up the fewest; whether others were left out.
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
		// Porcupine asks whether it has been where it is: it has if it was somewhere better.
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

// step adds the configs that may follow on a step.
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
		// What is not known of a copy may be something else.
	}
	return register.helped(found, before, step, step.end)
}

// helped adds the configs that may follow on a step after one or more unanswered writes that make it possible.
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
