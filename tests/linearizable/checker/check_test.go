package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// history parses a short form of histories of the keys k, k/ and k/a:
//
//	START..END OPERATION [KEY] WORDS: ANSWER
//
// END is ? without an answer. V is the version of writer V with its own bytes, W=V the version of
// writer W with the bytes of V.
func history(t *testing.T, text string) *History {
	t.Helper()
	lines := []string{`{"op": "about", "hot_keys": ["k", "k/", "k/a"]}`}
	for at, words := range strings.Split(strings.TrimSpace(text), "\n") {
		lines = append(lines, line(t, at, words))
	}
	read, err := read(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func line(t *testing.T, at int, words string) string {
	question, answer, _ := strings.Cut(strings.TrimSpace(words)+" ", ": ")
	asked := strings.Fields(question)
	start, end, _ := strings.Cut(asked[0], "..")
	fields := []string{fmt.Sprintf(`"client": %d, "gateway": 0, "start": %s, "op": "%s"`, at, start, asked[1])}
	if end != "?" {
		fields = append(fields, `"end": `+end)
	}
	for place, word := range asked[2:] {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case name == "if-none-match":
			fields = append(fields, `"if_none_match": true`)
		case name == "if-match":
			fields = append(fields, fmt.Sprintf(`"if_match": "\"%s\""`, value))
		case name == "from":
			fields = append(fields, fmt.Sprintf(`"source": "%s"`, value))
		case name == "keys":
			fields = append(fields, fmt.Sprintf(`"keys": ["%s"]`, strings.ReplaceAll(value, ",", `", "`)))
		case name == "as":
			fields = append(fields, fmt.Sprintf(`"makes": {"writer": "%s"}`, value))
		case name == "prefix" || name == "after" || name == "until" || name == "delimiter":
			fields = append(fields, fmt.Sprintf(`"%s": "%s"`, name, value))
		case place == 0:
			fields = append(fields, fmt.Sprintf(`"key": "%s"`, word))
		default:
			fields = append(fields, `"makes": `+version(word))
		}
	}
	words = strings.TrimSpace(answer)
	status, words, _ := strings.Cut(words, " ")
	if status == "" {
		return "{" + strings.Join(fields, ", ") + "}"
	}
	codes := map[string]string{"404": "NoSuchKey", "412": "PreconditionFailed", "409": "ConditionalRequestConflict"}
	fields = append(fields, fmt.Sprintf(`"status": %s, "code": "%s"`, status, codes[status]))
	switch asked[1] {
	case "get", "head":
		if words != "" {
			fields = append(fields, `"sees": `+version(words))
		}
	case "copy":
		if words != "" {
			fields = append(fields, fmt.Sprintf(`"sees": {"etag": "\"%s\"", "md5": "%s"}`, words, words))
		}
	case "list":
		fields = append(fields, shown(words))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func version(words string) string {
	words, size, sized := strings.Cut(words, " ")
	writer, body, copied := strings.Cut(words, "=")
	if !copied {
		body = writer
	}
	if !sized {
		size = sizeOf(body)
	}
	return fmt.Sprintf(`{"etag": "\"%s\"", "md5": "%s", "writer": "%s", "size": %s}`,
		body, strings.TrimSuffix(body, "-1"), writer, size)
}

func sizeOf(body string) string {
	if body == "empty" {
		return "0"
	}
	return "7"
}

func shown(words string) string {
	var entries, prefixes []string
	for _, word := range strings.Fields(words) {
		if key, body, is := strings.Cut(word, "="); is {
			entries = append(entries, fmt.Sprintf(`"%s": {"etag": "\"%s\"", "size": %s}`, key, body, sizeOf(body)))
		} else {
			prefixes = append(prefixes, fmt.Sprintf(`"%s"`, word))
		}
	}
	return fmt.Sprintf(`"entries": {%s}, "prefixes": [%s]`, strings.Join(entries, ", "), strings.Join(prefixes, ", "))
}

func verdicts(history *History) map[porcupine.CheckResult]int {
	facts := gather(history)
	found := map[porcupine.CheckResult]int{}
	for _, partition := range facts.partitions(history) {
		found[facts.check(partition, 10*time.Second).Verdict]++
	}
	return found
}

// Two versions of k/ have the bytes of v1. Which of them is copied to k/a does not follow from its
// ETag.
const twoWriters = `0..10 put k v1: 200
	0..10 copy k/a from=k as=z: 200 v1
	20..30 copy k/ from=k as=w: 200 v1
	40..50 copy k/ from=k: 200 v1
	60..70 copy k/a from=k/: 200 v1
	80..90 put k/ v2: 200
`

// Only v2 explains the refused creation: each unanswered copy is needed for a listing.
const manyWays = `0..10 put k v1: 200
	20..? copy k/ from=k as=w1:
	20..? copy k/ from=k as=w2:
	20..? copy k/ from=k as=w3:
	20..? copy k/ from=k as=w4:
	20..? copy k/ from=k as=w5:
	21..? put k/ v2:
	30..31 put k/ v3 if-none-match: 412
	32..33 delete k/: 204
	34..35 list: 200 k=v1 k/=v1
	36..37 delete k/: 204
	38..39 list: 200 k=v1 k/=v1
	40..41 delete k/: 204
	42..43 list: 200 k=v1 k/=v1
	44..45 delete k/: 204
	46..47 list: 200 k=v1 k/=v1
	48..49 delete k/: 204
	50..51 list: 200 k=v1 k/=v1
	52..53 delete k/: 204
`

// cases are histories that are not linearizable, each with a similar one that is.
var cases = []struct{ name, impossible, possible string }{
	{"stale read",
		"0..10 put k v1: 200\n 20..30 put k v2: 200\n 40..50 get k: 200 v1",
		"0..10 put k v1: 200\n 20..45 put k v2: 200\n 40..50 get k: 200 v1"},
	{"stale read after a new one",
		"0..10 put k v1: 200\n 20..90 put k v2: 200\n 30..40 head k: 200 v2\n 50..60 get k: 200 v1",
		"0..10 put k v1: 200\n 20..90 put k v2: 200\n 30..40 head k: 200 v1\n 50..60 get k: 200 v2"},
	{"lost acknowledged write",
		"0..10 put k v1: 200\n 20..30 get k: 404",
		"0..? put k v1:\n 20..30 get k: 404"},
	{"lost acknowledged overwrite",
		"0..10 put k v1: 200\n 20..30 put k v2: 200\n 40..50 list: 200 k=v1",
		"0..10 put k v1: 200\n 20..? put k v2:\n 40..50 list: 200 k=v1\n 60..70 get k: 200 v2"},
	{"two creations",
		"0..30 put k v1 if-none-match: 200\n 10..40 put k v2 if-none-match: 200",
		"0..30 put k v1 if-none-match: 200\n 10..40 put k v2 if-none-match: 412"},
	{"two creations, between which nothing was deleted",
		"0..30 put k v1 if-none-match: 200\n 10..40 put k v2 if-none-match: 200\n 50..60 delete k: 204",
		"0..30 put k v1 if-none-match: 200\n 10..40 put k v2 if-none-match: 200\n 20..60 delete k: 204"},
	{"creation refused of what was not there",
		"0..10 put k v1 if-none-match: 412\n 20..30 put k v2: 200",
		"0..10 put k v1 if-none-match: 412\n 5..30 put k v2: 200"},
	{"replaced ETag matches",
		"0..10 put k v1: 200\n 20..30 put k v2: 200\n 40..50 put k v3 if-match=v1: 200",
		"0..10 put k v1: 200\n 20..30 put k v2: 200\n 40..50 put k v3 if-match=v1: 412"},
	{"two successors of one ETag",
		"0..10 put k v1: 200\n 20..50 put k v2 if-match=v1: 200\n 20..50 put k v3 if-match=v1: 200",
		"0..10 put k v1: 200\n 20..50 put k v2 if-match=v1: 200\n 20..50 put k v3 if-match=v2: 200"},
	{"present ETag does not match",
		"0..10 put k v1: 200\n 20..30 delete k if-match=v1: 412",
		"0..10 put k v1: 200\n 20..30 delete k if-match=v1: 204\n 40..50 put k v2 if-match=v1: 404"},
	{"resurrected delete",
		"0..10 put k v1: 200\n 20..30 delete k: 204\n 40..50 get k: 404\n 60..70 get k: 200 v1",
		"0..10 put k v1: 200\n 20..65 delete k: 204\n 40..50 get k: 200 v1\n 60..70 get k: 404"},
	{"resurrected by a listing",
		"0..10 put k v1: 200\n 20..30 delete k: 204\n 40..50 list: 200 k=v1",
		"0..10 put k v1: 200\n 20..45 delete k: 204\n 40..50 list: 200 k=v1"},
	{"unanswered write that takes effect twice",
		"0..10 put k v1: 200\n 20..? put k v2:\n 30..40 get k: 200 v2\n 50..60 put k v3: 200\n 70..80 get k: 200 v2",
		"0..10 put k v1: 200\n 20..? put k v2:\n 30..40 get k: 200 v1\n 50..60 put k v3: 200\n 70..80 get k: 200 v2"},
	{"unanswered delete that takes effect twice",
		"0..10 put k v1: 200\n 20..? delete k:\n 30..40 get k: 404\n 50..60 put k v2: 200\n 70..80 get k: 404",
		"0..10 put k v1: 200\n 20..? delete k:\n 30..40 get k: 200 v1\n 50..60 put k v2: 200\n 70..80 get k: 404"},
	{"unanswered condition that was false",
		"0..10 put k v1: 200\n 20..? put k v2 if-none-match:\n 30..40 get k: 200 v2",
		"0..10 put k v1: 200\n 20..? put k v2 if-none-match:\n 30..40 get k: 200 v1"},
	{"version that nobody wrote",
		"0..10 put k v1: 200\n 20..30 get k: 200 v2",
		"0..10 put k v1: 200\n 20..30 get k: 200 v1"},
	{"bytes of one version, metadata of another",
		"0..50 put k v1: 200\n 0..50 put k v2: 200\n 20..30 get k: 200 v2=v1",
		"0..50 put k v1: 200\n 0..50 put k v2: 200\n 20..30 get k: 200 v1"},
	{"another key's version",
		"0..10 put k v1: 200\n 0..10 put k/a v2: 200\n 20..30 get k/a: 200 v1",
		"0..10 put k v1: 200\n 0..10 put k/a v2: 200\n 20..30 get k/a: 200 v2"},
	{"copy of what was replaced",
		"0..10 put k v1: 200\n 20..30 put k v2: 200\n 40..50 copy k/a from=k as=v3: 200 v1",
		"0..10 put k v1: 200\n 20..30 put k v2: 200\n 40..50 copy k/a from=k as=v3: 200 v2"},
	{"copy that is not there",
		"0..10 put k v1: 200\n 20..30 copy k/a from=k as=v3: 200 v1\n 40..50 get k/a: 404",
		"0..10 put k v1: 200\n 20..30 copy k/a from=k as=v3: 200 v1\n 40..50 get k/a: 200 v3=v1"},
	{"copy of nothing",
		"0..10 put k v1: 200\n 20..30 copy k/a from=k as=v3: 404",
		"0..10 put k/a v1: 200\n 20..30 copy k/a from=k as=v3: 404\n 40..50 get k/a: 200 v1"},
	{"copy with metadata that were elsewhere",
		"0..10 put k v1: 200\n 0..10 copy k/ from=k as=v2: 200 v1\n 20..30 copy k/a from=k: 200 v1\n 40..50 get k/a: 200 v2=v1",
		"0..10 put k v1: 200\n 0..10 copy k/ from=k as=v2: 200 v1\n 20..30 copy k/a from=k: 200 v1\n 40..50 get k/a: 200 v1"},
	{"unanswered copy of what was never there",
		"0..10 put k v1: 200\n 0..10 put k/ v2: 200\n 20..? copy k/a from=k:\n 30..40 head k/a: 200 v2",
		"0..10 put k v1: 200\n 0..10 put k/ v2: 200\n 20..? copy k/a from=k:\n 30..40 head k/a: 200 v1"},
	{"unanswered copy that changes",
		"0..10 put k v1: 200\n 20..30 put k v2: 200\n 25..? copy k/a from=k as=v3:\n" +
			"40..50 list: 200 k=v2 k/a=v1\n 60..70 get k/a: 200 v3=v2",
		"0..10 put k v1: 200\n 20..30 put k v2: 200\n 25..? copy k/a from=k as=v3:\n" +
			"40..50 list: 200 k=v2 k/a=v1\n 60..70 get k/a: 200 v3=v1"},
	{"half of DeleteObjects",
		"0..10 put k v1: 200\n 0..10 put k/a v2: 200\n 20..30 delete-many keys=k,k/a: 200\n 40..50 get k/a: 200 v2",
		"0..10 put k v1: 200\n 0..10 put k/a v2: 200\n 20..30 delete-many keys=k,k/: 200\n 40..50 get k/a: 200 v2"},
	{"lost upload",
		"0..10 put k v1: 200\n 20..30 complete k v2=v2-1: 200\n 40..50 get k: 200 v1",
		"0..10 put k v1: 200\n 20..30 complete k v2=v2-1: 200\n 40..50 get k: 200 v2=v2-1"},
	{"conflict of an upload whose condition is false",
		"0..10 put k v1: 200\n 20..30 complete k v2=v2-1 if-none-match: 409",
		"0..10 put k v1: 200\n 20..30 complete k v2=v2-1 if-match=v1: 409"},
	{"unanswered condition on a replaced ETag",
		"0..10 put k v1: 200\n 20..? put k v2 if-match=v0:\n 30..40 get k: 200 v2",
		"0..10 put k v1: 200\n 20..? put k v2 if-match=v1:\n 30..40 get k: 200 v2"},
	{"refused write with an effect",
		"0..10 put k v1: 200\n 20..30 put k v2 if-none-match: 412\n 40..50 get k: 200 v2",
		"0..10 put k v1: 200\n 20..30 put k v2 if-none-match: 412\n 40..50 get k: 200 v1"},
	{"conflict of an upload whose ETag is not there",
		"0..10 put k v1: 200\n 20..30 complete k v2=v2-1 if-match=v0: 409",
		"0..10 put k v1: 200\n 20..30 complete k v2=v2-1 if-match=v0: 412"},
	{"ETag of nothing does not match",
		"0..10 delete k if-match=v1: 412",
		"0..10 delete k if-match=v1: 404"},
	{"copy of what was deleted",
		"0..10 put k v1: 200\n 20..30 delete k: 204\n 40..50 copy k/a from=k as=v3: 200 v1",
		"0..10 put k v1: 200\n 20..45 delete k: 204\n 40..50 copy k/a from=k as=v3: 200 v1"},
	{"copy whose writer is one of two, with other bytes",
		twoWriters + "100..110 list: 200 k=v1 k/=v2 k/a=v2",
		twoWriters + "100..110 list: 200 k=v1 k/=v2 k/a=v1\n 120..130 get k/a: 200 v1"},
	{"copy whose writer is one of two, with a third",
		twoWriters + "100..110 get k/a: 200 z=v1",
		twoWriters + "100..110 get k/a: 200 v1"},
	{"unanswered copy with metadata of its own, and others",
		"0..10 put k v1: 200\n 20..? copy k/a from=k as=v3:\n 40..50 get k/a: 200 v1",
		"0..10 put k v1: 200\n 20..? copy k/a from=k as=v3:\n 40..50 get k/a: 200 v3=v1"},
	{"unanswered copy of another key",
		"0..10 put k v1: 200\n 0..10 put k/ v2: 200\n 20..? copy k/a from=k as=v3:\n 40..50 list: 200 k=v1 k/=v2 k/a=v2",
		"0..10 put k v1: 200\n 0..10 put k/ v2: 200\n 20..? copy k/a from=k as=v3:\n 40..50 list: 200 k=v1 k/=v2 k/a=v1"},
	{"unanswered copy of another key, with its metadata",
		"0..10 put k v1: 200\n 0..10 put k/ v2: 200\n 20..? copy k/a from=k:\n 40..50 list: 200 k=v1 k/=v2 k/a=v2",
		"0..10 put k v1: 200\n 0..10 put k/ v2: 200\n 20..? copy k/a from=k:\n 40..50 list: 200 k=v1 k/=v2 k/a=v1"},
	{"copy of a copy without an answer",
		"0..10 put k v1: 200\n 0..5 put k/a v5: 200\n 6..7 put k/a v6: 200\n 20..? copy k/ from=k as=v3:\n" +
			"30..? copy k/a from=k/ as=v4:\n 40..50 list: 200 k=v1 k/a=v5",
		"0..10 put k v1: 200\n 0..5 put k/a v5: 200\n 6..7 put k/a v6: 200\n 20..? copy k/ from=k as=v3:\n" +
			"30..? copy k/a from=k/ as=v4:\n 40..50 list: 200 k=v1 k/a=v1"},
	{"copy of a copy",
		"0..10 put k v1: 200\n 20..30 copy k/ from=k as=w: 200 v1\n 40..50 copy k/a from=k/: 200 v1\n 60..70 get k/a: 200 v1",
		"0..10 put k v1: 200\n 20..30 copy k/ from=k as=w: 200 v1\n 40..50 copy k/a from=k/: 200 v1\n 60..70 get k/a: 200 w=v1"},
	{"copy of a copy that was not answered",
		"0..10 put k v1: 200\n 20..? copy k/ from=k as=w:\n 30..35 get k/: 200 w=v1\n 40..50 copy k/a from=k/: 200 v1\n" +
			"60..70 get k/a: 200 v1",
		"0..10 put k v1: 200\n 20..? copy k/ from=k as=w:\n 30..35 get k/: 200 w=v1\n 40..50 copy k/a from=k/: 200 v1\n" +
			"60..70 get k/a: 200 w=v1"},
	{"unanswered copy of a copy",
		"0..10 put k v1: 200\n 20..30 copy k/ from=k as=w: 200 v1\n 40..50 put k v2: 200\n 60..? copy k/a from=k/ as=y:\n" +
			"70..80 list: 200 k=v2 k/=v1 k/a=v2",
		"0..10 put k v1: 200\n 20..30 copy k/ from=k as=w: 200 v1\n 40..50 put k v2: 200\n 60..? copy k/a from=k/ as=y:\n" +
			"70..80 list: 200 k=v2 k/=v1 k/a=v1"},
	{"unanswered delete that began later",
		"0..10 put k v1: 200\n 20..30 get k: 404\n 40..? delete k:",
		"0..10 put k v1: 200\n 20..30 get k: 404\n 15..? delete k:"},
	{"unanswered delete that began after what it made possible was seen",
		"0..10 put k v1: 200\n 20..60 put k v2 if-none-match: 200\n 30..40 get k: 200 v2\n 50..? delete k:",
		"0..10 put k v1: 200\n 20..60 put k v2 if-none-match: 200\n 30..40 get k: 200 v2\n 35..? delete k:"},
	{"two unanswered deletes for three that were seen",
		"0..10 put k v1: 200\n 12..? delete k:\n 15..? delete k if-match=v1:\n 20..30 put k v2 if-none-match: 200\n" +
			"40..50 put k v3 if-none-match: 200\n 60..70 put k v4 if-none-match: 200",
		"0..10 put k v1: 200\n 12..? delete k:\n 15..? delete k if-match=v1:\n 20..30 put k v2 if-none-match: 200\n" +
			"40..50 put k v3 if-none-match: 200\n 60..70 put k v4 if-none-match: 412"},
	{"unanswered creation where nothing was deleted",
		"0..10 put k v1: 200\n 22..? put k v2 if-none-match:\n 30..40 put k v3 if-match=v1: 412",
		"0..10 put k v1: 200\n 20..? delete k:\n 22..? put k v2 if-none-match:\n 30..40 put k v3 if-match=v1: 412"},
	{"unanswered creation that is as good as nothing",
		"0..10 put k v1: 200\n 15..? put k v2 if-none-match:\n 30..40 put k v4 if-match=v1: 412",
		"0..10 put k v1: 200\n 15..? put k v2 if-none-match:\n 20..? put k v3:\n 30..40 put k v4 if-match=v1: 412"},
	{"read during two writes",
		"0..10 put k v1: 200\n 20..95 put k v3: 200\n 22..90 put k v2: 200\n 30..40 get k: 200 v2\n 50..60 get k: 200 v1",
		"0..10 put k v1: 200\n 20..95 put k v3: 200\n 22..90 put k v2: 200\n 30..40 get k: 200 v2\n 50..60 get k: 200 v3"},
	{"more copies than were made", manyWays + "80..85 list: 200 k=v1 k/=v1", manyWays + "80..85 list: 200 k=v1"},
	{"two empty versions",
		"0..10 put k v1=empty: 200\n 20..? put k v2=empty:\n 30..40 list: 200 k=empty\n 50..60 put k v3: 200\n" +
			"70..80 get k: 200 v1=empty",
		"0..10 put k v1=empty: 200\n 20..? put k v2=empty:\n 30..40 list: 200 k=empty\n 50..60 put k v3: 200\n" +
			"70..80 get k: 200 v2=empty"},
	{"wrong size",
		"0..10 put k v1: 200\n 20..30 get k: 200 v1 5",
		"0..10 put k v1: 200\n 20..30 get k: 200 v1"},
	{"page without a common prefix",
		"0..10 put k/a v1: 200\n 20..30 list delimiter=/ after=k: 200",
		"0..10 put k/a v1: 200\n 20..30 list delimiter=/ after=k/: 200"},
	{"listing without a key that was there all the time",
		"0..10 put k/ v1: 200\n 20..30 list prefix=k/: 200",
		"0..10 put k/ v1: 200\n 20..30 list prefix=k/a: 200"},
	{"listing without a common prefix",
		"0..10 put k/a v1: 200\n 20..30 list delimiter=/: 200",
		"0..10 put k/a v1: 200\n 20..30 list delimiter=/: 200 k/"},
	{"page without a key",
		"0..10 put k/ v1: 200\n 20..30 list until=k/: 200",
		"0..10 put k/ v1: 200\n 20..30 list until=k: 200\n 40..50 list after=k/: 200"},
}

func TestCases(t *testing.T) {
	for _, one := range cases {
		t.Run(strings.ReplaceAll(one.name, " ", "-"), func(t *testing.T) {
			impossible := history(t, one.impossible)
			if found := verdicts(impossible); found[porcupine.Illegal] != 1 || len(impossible.Wrong) > 0 {
				t.Errorf("the impossible history: %v, %v", found, impossible.Wrong)
			}
			possible := history(t, one.possible)
			if found := verdicts(possible); found[porcupine.Ok] != 3 || len(possible.Wrong) > 0 {
				t.Errorf("the possible history: %v, %v", found, possible.Wrong)
			}
		})
	}
}

// Reducing a linearizable history must leave it linearizable.
func TestPartsOfPossibleHistories(t *testing.T) {
	texts := []string{long(false)}
	for _, one := range cases {
		texts = append(texts, one.possible)
	}
	for _, text := range texts {
		history := history(t, text)
		facts := gather(history)
		for _, partition := range facts.partitions(history) {
			facts.check(partition, time.Minute)
			for at, operation := range partition.Operations {
				if (at%7 == 0 || at < 50) && facts.illegal(state{}, until(partition.Operations, operation.Return)) {
					t.Errorf("the beginning, to %d, of %q in\n%s", operation.Return, partition.Key, text)
				}
			}
			for _, moment := range quietMoments(partition.Operations) {
				if facts.illegal(state{unknown: true}, since(partition.Operations, moment)) {
					t.Errorf("the end, from %d, of %q in\n%s", moment, partition.Key, text)
				}
			}
		}
	}
}

func TestWrongAnswers(t *testing.T) {
	for _, text := range []string{
		"0..10 put k v1: 500",
		"0..10 put k v1: 412",
		"0..10 put k v1 if-none-match: 404",
		"0..10 put k v1 if-none-match: 409",
		"0..10 delete k: 404",
		"0..10 delete-many keys=k: 503",
		"0..10 copy k from=k/a as=v1: 412",
		"0..10 get k: 403",
		"0..10 list until=k: 200 k/=v1",
	} {
		history := history(t, text)
		if verdicts(history); len(history.Wrong) != 1 {
			t.Errorf("%s: %v", text, history.Wrong)
		}
	}
}

// long is a history of 400 writes of each of two keys, with a stale read if it is to be wrong.
func long(wrong bool) string {
	lines := []string{}
	for n := range 400 {
		lines = append(lines, fmt.Sprintf("%d..%d put k v%d: 200", 10*n, 10*n+15, n),
			fmt.Sprintf("%d..%d put k/a w%d: 200", 10*n, 10*n+5, n), fmt.Sprintf("%d..%d get k/a: 200 w%d", 10*n+6, 10*n+9, n))
		if n == 300 {
			lines = append(lines, fmt.Sprintf("%d..? put k x:", 10*n))
			if wrong {
				lines = append(lines, fmt.Sprintf("%d..%d get k/a: 200 w200", 10*n+7, 10*n+8))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func TestRun(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		directory := t.TempDir()
		lines := []string{`{"op": "about", "hot_keys": ["k", "k/", "k/a"]}`,
			`{"op": "kill", "gateway": 1, "start": 3001, "end": 3005}`}
		for at, words := range strings.Split(long(wrong), "\n") {
			lines = append(lines, line(t, at%5, words))
		}
		path := filepath.Join(directory, "history.jsonl")
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
		good, err := run(path, directory, time.Minute)
		if err != nil || good == wrong {
			t.Fatalf("good: %v, %v", good, err)
		}
		if !wrong {
			continue
		}
		text, err := os.ReadFile(filepath.Join(directory, "violation.txt"))
		if err != nil {
			t.Fatal(err)
		}
		// The smallest violation: the write of w300, the stale read, and the kill at that time.
		if count := strings.Count(string(text), " ms  client"); count > 3 || !strings.Contains(string(text), "gateway 1 was killed") {
			t.Errorf("%s", text)
		}
		if page, err := os.ReadFile(filepath.Join(directory, "violation.html")); err != nil || !strings.Contains(string(page), "w200") {
			t.Errorf("%v: %d bytes", err, len(page))
		}
	}
}

// The orders of many concurrent writes are too many to be tried.
func TestTimeLimit(t *testing.T) {
	lines := []string{"90..95 get k: 404"}
	for n := range 40 {
		lines = append(lines, fmt.Sprintf("0..80 put k v%d: 200", n))
	}
	history := history(t, strings.Join(lines, "\n"))
	facts := gather(history)
	if verdict := facts.check(facts.partitions(history)[0], 100*time.Millisecond).Verdict; verdict != porcupine.Unknown {
		t.Error("a key that can't be decided in the time is", verdict)
	}
}
