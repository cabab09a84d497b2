package main

// anywhere stands for any key as the origin of a version.
const anywhere = "\x00anywhere"

type set map[string]bool

// facts are what the whole history tells of versions, whatever the order of its operations is.
type facts struct {
	// MD5 -> size.
	sizes map[string]int64
	// MD5 -> writers of versions with these bytes.
	writers map[string]set
	// Key -> MD5s and writers that it may have had.
	bodiesOn, writersOn map[string]set
}

// gather looks at all writes, whether they were accepted or not.
func gather(history *History) *facts {
	facts := &facts{map[string]int64{}, map[string]set{}, map[string]set{}, map[string]set{}}
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
	for changed := true; changed; {
		changed = false
		for _, line := range history.Lines {
			if line.Op == "copy" && (!line.answered() || line.Status == 200) {
				changed = facts.copied(line) || changed
			}
		}
	}
	return facts
}

func (facts *facts) wrote(md5, writer string) bool {
	if facts.writers[md5] == nil {
		facts.writers[md5] = set{}
	}
	return add(facts.writers[md5], writer)
}

// copied adds what a copy may have taken to its target, and reports whether that is new.
func (facts *facts) copied(line *Line) bool {
	changed := false
	bodies, writers := facts.bodiesOn[line.Source], facts.writersOn[line.Source]
	if line.answered() {
		bodies = set{line.Sees.MD5: true}
	}
	if line.Makes != nil {
		writers = set{line.Makes.Writer: true}
	}
	for md5 := range bodies {
		changed = add(facts.bodiesOn[line.Key], md5) || changed
		if line.Makes != nil {
			changed = facts.wrote(md5, line.Makes.Writer) || changed
		}
	}
	for writer := range writers {
		changed = add(facts.writersOn[line.Key], writer) || changed
	}
	return changed
}

// knows reports whether a version with these bytes can have been copied from a key, and has this writer now.
// An empty writer can be any.
func (facts *facts) knows(origin, md5, writer string) bool {
	return origin == anywhere || facts.bodiesOn[origin][md5] && (writer == "" || facts.writers[md5][writer])
}

// wroteAt reports whether a version with these bytes can have had this writer at a key. An empty MD5 can be
// any.
func (facts *facts) wroteAt(origin, md5, writer string) bool {
	return origin == anywhere || facts.writersOn[origin][writer] && (md5 == "" || facts.writers[md5][writer])
}

// only gives the one writer that a copy of these bytes from a key can have taken along, or nothing.
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

func add(to set, one string) bool {
	if to[one] {
		return false
	}
	to[one] = true
	return true
}
