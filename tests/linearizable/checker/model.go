package main

import (
	"fmt"
	"strings"
)

// state is the state of a key between two operations.
type state struct {
	// unknown stands for any state, at the beginning of a part of a history.
	unknown bool
	present bool
	// An empty field is not known yet. This happens after copies that were not answered, and copies
	// that took metadata along. The next operation that shows the field determines it.
	etag, md5, writer string
	// origin is the source of such a copy.
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
	// unanswered operations may have taken effect at any later time, or never. Those whose version
	// was seen have taken effect.
	unanswered answer = iota
	accepted
	// refused is status 412, missing 404, conflict 409.
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
	// What a read sees; nil if the key is absent.
	sees *Version
	line *Line
	// When it was answered or, without an answer, when its version was first seen; else never.
	end int64
}

// apply gives the state after a step, and whether its answer is possible in this state.
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

// condition gives the state as the answer to a condition determines it, and whether the answer is
// possible. A step without an answer counts as accepted.
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

// observed gives the state as a read determines it, and whether the read is possible.
func (facts *facts) observed(before state, sees *Version) (state, bool) {
	if sees == nil {
		return state{}, !before.present
	}
	if before.unknown {
		// A listing does not show all fields.
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
