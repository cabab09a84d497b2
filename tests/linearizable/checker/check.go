package main

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// never is the end of an unanswered operation.
const never = math.MaxInt64

// Partition has the operations on one key.
type Partition struct {
	Key        string
	Operations []porcupine.Operation
	// The numbers of unanswered operations, of those whose effect was seen, and of operations that
	// begin during a write.
	Unanswered, Seen, Overlapping int
}

// partitions splits a history by key, and adds wrong answers to the history.
func (facts *facts) partitions(history *History) []*Partition {
	partitions := map[string]*Partition{}
	var all []*Partition
	for _, key := range history.Keys {
		partitions[key] = &Partition{Key: key}
		all = append(all, partitions[key])
	}
	for _, line := range history.Lines {
		for key, steps := range facts.steps(history, line) {
			partition := partitions[key]
			for _, step := range steps {
				partition.add(step, facts)
			}
		}
	}
	return all
}

func (partition *Partition) add(step *step, facts *facts) {
	step.end = never
	if step.answer != unanswered || step.action == observe {
		step.end = *step.line.End
	} else {
		partition.Unanswered++
		if makes := step.line.Makes; makes != nil {
			step.end = facts.firstSeen(makes)
		}
		if step.end < never {
			partition.Seen++
			// Porcupine rejects what was seen before it began.
			step.end = max(step.end, step.line.Start)
		}
	}
	partition.Operations = append(partition.Operations, porcupine.Operation{
		ClientId: step.line.Client, Input: step, Call: step.line.Start, Output: nil, Return: step.end,
	})
}

// steps gives the operations on single keys that a line stands for.
func (facts *facts) steps(history *History, line *Line) map[string][]*step {
	wrong := func() {
		history.Wrong = append(history.Wrong, fmt.Sprintf("client %d at %d: %s %q was answered %d %s",
			line.Client, line.Start, line.Op, line.Key, line.Status, line.Code))
	}
	switch line.Op {
	case "put", "complete", "delete":
		one := &step{action: write, ifAbsent: line.IfNoneMatch, ifMatch: line.IfMatch, line: line}
		accepts := 200
		if line.Op == "delete" {
			one.action, accepts = remove, 204
		} else {
			one.makes = state{present: true, etag: line.Makes.ETag, md5: line.Makes.MD5, writer: line.Makes.Writer}
		}
		one.answer = line.answer(accepts)
		if one.answer == unanswered && line.answered() {
			wrong()
		}
		return map[string][]*step{line.Key: {one}}
	case "delete-many":
		found := map[string][]*step{}
		answer := line.answer(200)
		if answer == unanswered && line.answered() {
			wrong()
		}
		for _, key := range line.Keys {
			found[key] = []*step{{action: remove, answer: answer, line: line}}
		}
		return found
	case "copy":
		return facts.copySteps(line, wrong)
	case "get", "head":
		one := &step{action: observe, sees: line.Sees, line: line}
		if !line.answered() {
			return nil
		}
		absent := line.Status == 404 && (line.Op == "head" || line.Code == "NoSuchKey")
		if !absent && (line.Status != 200 || one.sees == nil) {
			wrong()
			return nil
		}
		return map[string][]*step{line.Key: {one}}
	case "list":
		return line.listSteps(history)
	}
	history.Wrong = append(history.Wrong, fmt.Sprintf("the history has an operation %q", line.Op))
	return nil
}

// answer classifies the answer to a write, which is accepted with the given status.
func (line *Line) answer(accepts int) answer {
	switch {
	case !line.answered():
		return unanswered
	case line.Status == accepts:
		return accepted
	case line.Status == 412 && (line.IfNoneMatch || line.IfMatch != ""):
		return refused
	case line.Status == 404 && line.IfMatch != "" && line.Code == "NoSuchKey":
		return missing
	case line.Status == 409 && line.Op == "complete" && (line.IfNoneMatch || line.IfMatch != ""):
		return conflict
	}
	return unanswered
}

// copySteps gives a read of the source and a write of the target. Their order is not checked.
func (facts *facts) copySteps(line *Line, wrong func()) map[string][]*step {
	if line.answered() && line.Status == 404 && line.Code == "NoSuchKey" {
		return map[string][]*step{line.Source: {{action: observe, line: line}}}
	}
	makes := state{present: true, origin: line.Source}
	if line.Makes != nil {
		makes.writer = line.Makes.Writer
	}
	writes := &step{action: write, makes: makes, line: line}
	found := map[string][]*step{line.Key: {writes}}
	if !line.answered() || line.Status != 200 {
		if line.answered() {
			wrong()
		}
		return found
	}
	writes.answer = accepted
	writes.makes.etag, writes.makes.md5 = line.Sees.ETag, line.Sees.MD5
	if makes.writer == "" {
		writes.makes.writer = facts.only(line.Source, line.Sees.MD5)
	}
	if writes.makes.writer != "" {
		writes.makes.origin = ""
	}
	// The source may be a multipart object, whose ETag is another: the bytes must agree.
	found[line.Source] = []*step{{action: observe, sees: &Version{MD5: line.Sees.MD5}, line: line}}
	return found
}

// listSteps gives a read of each key that the page covers.
func (line *Line) listSteps(history *History) map[string][]*step {
	if !line.answered() {
		return nil
	}
	found := map[string][]*step{}
	for _, key := range history.Keys {
		if !line.covers(key) {
			continue
		}
		one := &step{action: observe, line: line}
		if entry := line.Entries[key]; entry != nil {
			one.sees = &Version{ETag: entry.ETag, Size: &entry.Size}
		}
		found[key] = []*step{one}
	}
	for key := range line.Entries {
		if found[key] == nil {
			history.Wrong = append(history.Wrong,
				fmt.Sprintf("client %d at %d: a listing shows %q where it cannot be", line.Client, line.Start, key))
		}
	}
	return found
}

// Result is the verdict on a partition.
type Result struct {
	*Partition
	Verdict porcupine.CheckResult
	Took    time.Duration
}

func (facts *facts) check(partition *Partition, limit time.Duration) Result {
	sort.SliceStable(partition.Operations, func(one, other int) bool {
		return partition.Operations[one].Call < partition.Operations[other].Call
	})
	busy := int64(-1)
	for _, operation := range partition.Operations {
		if operation.Call <= busy {
			partition.Overlapping++
		}
		if operation.Return != never && operation.Input.(*step).action != observe {
			busy = max(busy, operation.Return)
		}
	}
	began := time.Now()
	verdict := facts.decide(state{}, partition.Operations, limit)
	return Result{partition, verdict, time.Since(began)}
}

// The number of configs that the first search follows, and the factor for each further search.
const (
	widthFirst  = 4
	widthFactor = 8
)

func (facts *facts) decide(initial state, operations []porcupine.Operation, limit time.Duration) porcupine.CheckResult {
	operations, classes := facts.classes(operations)
	end := time.Now().Add(limit)
	for width := widthFirst; ; width *= widthFactor {
		left := time.Until(end)
		if left <= 0 {
			return porcupine.Unknown
		}
		register := &register{facts, classes, width, false}
		verdict := porcupine.CheckOperationsTimeout(register.model(initial), operations, left)
		if verdict != porcupine.Illegal || !register.leaves {
			return verdict
		}
	}
}
