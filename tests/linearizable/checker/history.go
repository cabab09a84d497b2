package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Line is one line of a history. clients.py describes the fields of each operation.
type Line struct {
	Op      string `json:"op"`
	Client  int    `json:"client"`
	Gateway int    `json:"gateway"`
	// Nanoseconds of one monotonic clock. End is missing if no answer came.
	Start int64  `json:"start"`
	End   *int64 `json:"end,omitempty"`

	Key  string   `json:"key,omitempty"`
	Keys []string `json:"keys,omitempty"`
	// Makes is the version that a write makes if it is accepted. For a copy, only the writer is
	// known.
	Makes       *Version `json:"makes,omitempty"`
	IfNoneMatch bool     `json:"if_none_match,omitempty"`
	IfMatch     string   `json:"if_match,omitempty"`
	Source      string   `json:"source,omitempty"`

	Status int    `json:"status,omitempty"`
	Code   string `json:"code,omitempty"`
	// Sees is the version that a read was answered with; for a copy, its ETag.
	Sees *Version `json:"sees,omitempty"`

	Prefix    string `json:"prefix,omitempty"`
	Delimiter string `json:"delimiter,omitempty"`
	// A page of a listing shows what comes after After, up to Until (up to the end if it is
	// missing).
	After    string            `json:"after,omitempty"`
	Until    *string           `json:"until,omitempty"`
	Entries  map[string]*Entry `json:"entries,omitempty"`
	Prefixes []string          `json:"prefixes,omitempty"`

	// The subject of the run, or an error that the driver found.
	HotKeys []string `json:"hot_keys,omitempty"`
	What    string   `json:"what,omitempty"`
}

// Version is the result of one write. Empty fields are not known.
type Version struct {
	ETag string `json:"etag,omitempty"`
	// MD5 of the bytes, in hex. The ETag of a multipart object does not contain it.
	MD5    string `json:"md5,omitempty"`
	Writer string `json:"writer,omitempty"`
	Size   *int64 `json:"size,omitempty"`
}

// Entry is a key's entry in a listing.
type Entry struct {
	ETag string `json:"etag"`
	Size int64  `json:"size"`
}

// History is the record of a run.
type History struct {
	Keys  []string
	Lines []*Line
	Kills []*Line
	// Wrong has a sentence for each answer that is wrong in every state.
	Wrong []string
}

func read(input io.Reader) (*History, error) {
	history := &History{}
	scanner := bufio.NewScanner(input)
	scanner.Buffer(nil, 16<<20)
	for number := 1; scanner.Scan(); number++ {
		line := &Line{}
		if err := json.Unmarshal(scanner.Bytes(), line); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		switch line.Op {
		case "about":
			history.Keys = line.HotKeys
		case "kill":
			history.Kills = append(history.Kills, line)
		case "wrong":
			history.Wrong = append(history.Wrong, line.What)
		default:
			history.Lines = append(history.Lines, line)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	return history, history.validate()
}

// validate checks that each line is about hot keys only.
func (history *History) validate() error {
	if len(history.Keys) == 0 {
		return fmt.Errorf("the history has no line that says which keys it is about")
	}
	for _, line := range history.Lines {
		for _, key := range append([]string{line.Key, line.Source}, line.Keys...) {
			if key != "" && !slices.Contains(history.Keys, key) {
				return fmt.Errorf("client %d at %d: the key %q is not one of the hot keys", line.Client, line.Start, key)
			}
		}
	}
	return nil
}

func (line *Line) answered() bool { return line.End != nil }

// group is the common prefix that a listing shows instead of a key, if any.
func (line *Line) group(key string) (string, bool) {
	if line.Delimiter == "" {
		return "", false
	}
	rest := strings.TrimPrefix(key, line.Prefix)
	at := strings.Index(rest, line.Delimiter)
	if at < 0 {
		return "", false
	}
	return line.Prefix + rest[:at+len(line.Delimiter)], true
}

// covers reports whether a page shows whether a key is present.
func (line *Line) covers(key string) bool {
	if !strings.HasPrefix(key, line.Prefix) {
		return false
	}
	place := key
	if group, ok := line.group(key); ok {
		for _, shown := range line.Prefixes {
			if shown == group {
				// The page does not show which of the keys below the prefix are present.
				return false
			}
		}
		place = group
	}
	return place > line.After && (line.Until == nil || place <= *line.Until)
}
