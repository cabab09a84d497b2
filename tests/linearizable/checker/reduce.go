package main

import (
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// A reduced history that is not decided in this time counts as linearizable.
const reduceLimit = 20 * time.Second

// Reduced is a part of a partition that is not linearizable.
type Reduced struct {
	Initial    state
	Operations []porcupine.Operation
}

// reduce finds a small part of a partition that is not linearizable. Leaving out operations, in the
// ways that are used here, never makes a linearizable history one that is not.
func (facts *facts) reduce(operations []porcupine.Operation) Reduced {
	reduced := Reduced{state{}, facts.cutEnd(operations)}
	if later, ok := facts.cutBeginning(reduced.Operations); ok {
		reduced = Reduced{state{unknown: true}, later}
	}
	return facts.dropReads(reduced)
}

func (facts *facts) illegal(initial state, operations []porcupine.Operation) bool {
	return facts.decide(initial, operations, reduceLimit) == porcupine.Illegal
}

// cutEnd finds the shortest beginning that is not linearizable.
func (facts *facts) cutEnd(operations []porcupine.Operation) []porcupine.Operation {
	var ends []int64
	for _, operation := range operations {
		if operation.Return != never {
			ends = append(ends, operation.Return)
		}
	}
	sort.Slice(ends, func(one, other int) bool { return ends[one] < ends[other] })
	at := sort.Search(len(ends), func(n int) bool { return facts.illegal(state{}, until(operations, ends[n])) })
	if at == len(ends) {
		return operations
	}
	return until(operations, ends[at])
}

// until gives what is known at a moment: operations that end later are not answered yet.
func until(operations []porcupine.Operation, moment int64) []porcupine.Operation {
	var kept []porcupine.Operation
	for _, operation := range operations {
		step := *operation.Input.(*step)
		switch {
		case operation.Call > moment:
			continue
		case operation.Return <= moment:
		case step.action == observe:
			continue
		default:
			step.answer, step.end = unanswered, never
			operation.Input, operation.Return = &step, never
		}
		kept = append(kept, operation)
	}
	return kept
}

// cutBeginning finds the shortest end that is not linearizable, whatever the state before it was.
func (facts *facts) cutBeginning(operations []porcupine.Operation) ([]porcupine.Operation, bool) {
	cuts := quietMoments(operations)
	for back := 1; back <= len(cuts); back *= 2 {
		if later := since(operations, cuts[len(cuts)-back]); facts.illegal(state{unknown: true}, later) {
			first := sort.Search(back, func(n int) bool {
				return facts.illegal(state{unknown: true}, since(operations, cuts[len(cuts)-1-n]))
			})
			return since(operations, cuts[len(cuts)-1-min(first, back-1)]), true
		}
	}
	return nil, false
}

// quietMoments gives the starts of operations during which no answered write is in progress.
func quietMoments(operations []porcupine.Operation) []int64 {
	var moments []int64
	busy := int64(-1)
	for _, operation := range operations {
		if operation.Call > busy {
			moments = append(moments, operation.Call)
		}
		if operation.Input.(*step).action != observe && operation.Return != never {
			busy = max(busy, operation.Return)
		}
	}
	return moments
}

// since keeps the operations that begin at a quiet moment or later, and unanswered writes.
func since(operations []porcupine.Operation, moment int64) []porcupine.Operation {
	var kept []porcupine.Operation
	for _, operation := range operations {
		if operation.Call >= moment || operation.Return == never {
			kept = append(kept, operation)
		}
	}
	return kept
}

// dropReads leaves out the reads that the violation does not need.
func (facts *facts) dropReads(reduced Reduced) Reduced {
	for at := len(reduced.Operations) - 1; at >= 0 && len(reduced.Operations) < 500; at-- {
		if reduced.Operations[at].Input.(*step).action != observe {
			continue
		}
		without := append(append([]porcupine.Operation{}, reduced.Operations[:at]...), reduced.Operations[at+1:]...)
		if facts.illegal(reduced.Initial, without) {
			reduced.Operations = without
		}
	}
	return reduced
}
