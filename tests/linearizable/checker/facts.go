package main

import (
	"maps"
	"strings"
)

// anywhere stands for any key as the origin of a version.
const anywhere = "\x00anywhere"

type set map[string]bool

// facts are what the whole history says about versions, in any order of its operations.
type facts struct {
	// MD5 -> size.
	sizes map[string]int64
	// MD5 -> writers of versions with these bytes.
	writers map[string]set
	// Key -> MD5s and writers of the versions that it may have had.
	bodiesOn, writersOn map[string]set
	// A field of a version -> the end of the first answer that showed it.
	seen map[string]int64
	// Writer -> the ETag that was seen with it, without quotes: the MD5, but for multipart uploads.
	bodies map[string]string
}

// gather reads the facts from all writes, accepted or not.
func gather(history *History) *facts {
	facts := &facts{map[string]int64{}, map[string]set{}, map[string]set{}, map[string]set{}, map[string]int64{}, map[string]string{}}
	for _, key := range history.Keys {
		facts.bodiesOn[key], facts.writersOn[key] = set{}, set{}
	}
	for _, line := range history.Lines {
		if makes := line.Makes; makes != nil && makes.MD5 != "" {
			if makes.Size != nil {
				facts.sizes[makes.MD5] = *makes.Size
			}
			facts.bodiesOn[line.Key][makes.MD5] = true
			facts.writersOn[line.Key][makes.Writer] = true
			facts.wrote(makes.MD5, makes.Writer)
		}
	}
	facts.look(history)
	facts.follow(history)
	return facts
}

// follow adds the bytes and writers that copies may have taken from key to key.
func (facts *facts) follow(history *History) {
	type way struct{ source, target string }
	// The ways of copies that may have taken any of the source's bytes, or writers.
	bodies, writers := map[way]bool{}, map[way]bool{}
	for _, line := range history.Lines {
		if line.Op != "copy" || line.answered() && line.Status != 200 {
			continue
		}
		if line.answered() {
			facts.bodiesOn[line.Key][line.Sees.MD5] = true
		} else {
			bodies[way{line.Source, line.Key}] = true
		}
		if line.Makes == nil {
			writers[way{line.Source, line.Key}] = true
			continue
		}
		facts.writersOn[line.Key][line.Makes.Writer] = true
		if line.answered() {
			facts.wrote(line.Sees.MD5, line.Makes.Writer)
		} else if md5, seen := facts.bodies[line.Makes.Writer]; seen {
			facts.wrote(md5, line.Makes.Writer)
		}
	}
	for changed := true; changed; {
		changed = false
		for way := range bodies {
			changed = addAll(facts.bodiesOn[way.target], facts.bodiesOn[way.source]) || changed
		}
		for way := range writers {
			changed = addAll(facts.writersOn[way.target], facts.writersOn[way.source]) || changed
		}
	}
}

// look notes the fields of versions that answers show.
func (facts *facts) look(history *History) {
	note := func(name string, line *Line) {
		if at, ok := facts.seen[name]; !ok || *line.End < at {
			facts.seen[name] = *line.End
		}
	}
	for _, line := range history.Lines {
		if !line.answered() {
			continue
		}
		if sees := line.Sees; sees != nil {
			note("writer "+sees.Writer, line)
			note("etag "+sees.ETag, line)
			note("md5 "+sees.MD5, line)
			if sees.Writer != "" {
				facts.bodies[sees.Writer] = strings.Trim(sees.ETag, `"`)
			}
		}
		for _, entry := range line.Entries {
			note("etag "+entry.ETag, line)
		}
	}
}

// firstSeen gives the end of the first answer that shows a version, or never. An unanswered write
// has taken effect by then. Empty versions are told by their writers alone.
func (facts *facts) firstSeen(makes *Version) int64 {
	names := []string{"writer " + makes.Writer}
	if makes.Size != nil && *makes.Size > 0 {
		names = append(names, "etag "+makes.ETag, "md5 "+makes.MD5)
	}
	first := int64(never)
	for _, name := range names {
		if at, ok := facts.seen[name]; ok {
			first = min(first, at)
		}
	}
	return first
}

func (facts *facts) wrote(md5, writer string) {
	if facts.writers[md5] == nil {
		facts.writers[md5] = set{}
	}
	facts.writers[md5][writer] = true
}

// knows reports whether these bytes can have been copied from a key.
func (facts *facts) knows(origin, md5 string) bool {
	return origin == anywhere || facts.bodiesOn[origin][md5]
}

// wroteAt reports whether a version with these bytes can have had this writer at a key. An empty
// MD5 stands for any.
func (facts *facts) wroteAt(origin, md5, writer string) bool {
	return origin == anywhere || facts.writersOn[origin][writer] && (md5 == "" || facts.writers[md5][writer])
}

// only gives the writer that a copy of these bytes from a key must have taken, if there is only
// one.
func (facts *facts) only(origin, md5 string) string {
	found := ""
	for writer := range facts.writers[md5] {
		if facts.writersOn[origin][writer] {
			if found != "" {
				return ""
			}
			found = writer
		}
	}
	return found
}

// addAll reports whether one of the added was new.
func addAll(to, from set) bool {
	before := len(to)
	maps.Copy(to, from)
	return len(to) > before
}
