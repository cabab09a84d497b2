package main

import (
	"fmt"
	"strings"
)

// state is what a key has between two operations.
type state struct {
	// unknown is the state at the beginning of a part of a history: anything is possible.
	unknown bool
	present bool
	// Empty fields are not known yet: a copy's that was not answered, or that took metadata along.
	// The next operation that shows them decides.
	etag, md5, writer string
	// origin is the key that such a copy was made of.
	origin string
}

type action int

const (
	observe action = iota
	write
	remove
)

type answer int

const (
	// unanswered operations may have taken effect at any later time, or never. If their version was seen,
	// they have.
	unanswered answer = iota
	accepted
	// refused is 412, missing 404, conflict 409.
	refused
	missing
	conflict
)

// step is one operation on one key.
type step struct {
	action action
	answer answer
	// At most one condition.
	ifAbsent bool
	ifMatch  string
	// What a write makes.
	makes state
	// What a read sees; nil if there was nothing.
	sees *Version
	line *Line
	// When it was answered, or its version was seen; never if neither happened.
	end int64
}

// apply gives the state after a step, and whether its answer can have come in this state.
func (facts *facts) apply(before state, step *step) (state, bool) {
	if step.action == observe {
		return facts.observed(before, step.sees)
	}
	after := step.makes
	if step.action == remove {
		after = state{}
	}
	before, ok := facts.condition(before, step)
	if !ok || step.answer != accepted && step.answer != unanswered {
		return before, ok
	}
	return after, true
}

// condition gives the state as far as the answer to a condition tells it, and whether that can be. A step
// without an answer is one that was accepted.
func (facts *facts) condition(before state, step *step) (state, bool) {
	accepts := step.answer == accepted || step.answer == unanswered
	switch {
	case before.unknown:
		return before, true
	case step.answer == conflict:
		// The condition is true, and the key has been written to since the upload was created.
		return before, step.ifAbsent && !before.present ||
			step.ifMatch != "" && before.present && (before.etag == "" || before.etag == step.ifMatch)
	case step.ifAbsent:
		return before, before.present == (step.answer == refused) && step.answer != missing
	case step.ifMatch == "":
		return before, accepts
	case !before.present:
		return before, step.answer == missing
	case accepts:
		return facts.observed(before, &Version{ETag: step.ifMatch})
	default:
		return before, step.answer == refused && before.etag != step.ifMatch
	}
}

// observed gives the state as far as a read tells it, and whether the read can have seen it.
func (facts *facts) observed(before state, sees *Version) (state, bool) {
	if sees == nil {
		return state{}, !before.present
	}
	if before.unknown {
		// A listing does not tell all fields.
		return state{present: true, etag: sees.ETag, md5: sees.MD5, writer: sees.Writer, origin: anywhere}, true
	}
	if !before.present {
		return before, false
	}
	after := before
	if sees.ETag != "" && after.etag != sees.ETag {
		if after.etag != "" || !facts.knows(after.origin, strings.Trim(sees.ETag, `"`)) {
			return before, false
		}
		after.etag = sees.ETag
		if !strings.Contains(sees.ETag, "-") {
			sees = &Version{sees.ETag, strings.Trim(sees.ETag, `"`), sees.Writer, sees.Size}
		}
	}
	if sees.MD5 != "" && after.md5 != sees.MD5 {
		if after.md5 != "" {
			return before, false
		}
		after.md5 = sees.MD5
	}
	if sees.Writer != "" && after.writer != sees.Writer {
		if after.writer != "" || !facts.wroteAt(after.origin, after.md5, sees.Writer) {
			return before, false
		}
		after.writer = sees.Writer
	}
	if size, known := facts.sizes[after.md5]; known && sees.Size != nil && *sees.Size != size {
		return before, false
	}
	if after.etag != "" && after.md5 != "" && after.writer != "" {
		after.origin = ""
	}
	return after, true
}

func (state state) String() string {
	switch {
	case state.unknown:
		return "anything"
	case !state.present:
		return "absent"
	}
	return fmt.Sprintf("%s %s", orUnknown(state.writer), orUnknown(state.etag))
}

func orUnknown(text string) string {
	if text == "" {
		return "?"
	}
	return text
}

func (step *step) String() string {
	line := step.line
	words := []string{strings.ToUpper(line.Op)}
	if step.ifAbsent {
		words = append(words, "If-None-Match *")
	}
	if step.ifMatch != "" {
		words = append(words, "If-Match "+step.ifMatch)
	}
	if line.Op == "copy" {
		words = append(words, fmt.Sprintf("%q -> %q", line.Source, line.Key))
	}
	if step.action == write {
		words = append(words, "of "+step.makes.String())
	}
	words = append(words, fmt.Sprintf("through %d:", line.Gateway))
	switch {
	case step.action != observe && step.answer == unanswered:
		words = append(words, "no answer")
	case step.action != observe:
		words = append(words, fmt.Sprintf("%d %s", line.Status, line.Code))
	case step.sees == nil:
		words = append(words, "absent")
	default:
		words = append(words, orUnknown(step.sees.Writer), orUnknown(step.sees.ETag))
	}
	return strings.TrimSpace(strings.Join(words, " "))
}
