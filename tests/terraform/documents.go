package main

import (
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
)

// A document is the JSON of a policy. Two are equal if they say the same.
type document string

const (
	// What percent-encoding, JSON and XML each have their own way with.
	readOnly document = `{"Version": "2012-10-17", "Statement": [{
		"Sid": "Read", "Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"],
		"Resource": ["arn:aws:s3:::b/${aws:username}/*", "arn:aws:s3:::b"],
		"Condition": {"StringLike": {"s3:prefix": ["a b+c/*", "ü&<x>\"%2B", "\\n"]}}}]}`
	readWrite document = `{"Statement": {"Effect": "Allow", "Action": "s3:*",
		"Resource": "arn:aws:s3:::b/*"}, "Version": "2012-10-17"}`
	ec2Trust document = `{"Version": "2012-10-17", "Statement": [{"Sid": "", "Effect": "Allow",
		"Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}`
)

// trustIn lets an account's users assume a role.
func trustIn(account string) document {
	return document(`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
		"Principal": {"AWS": "arn:aws:iam::` + account + `:root"}, "Action": ["sts:AssumeRole"],
		"Condition": {"StringEquals": {"sts:ExternalId": "lab-7"}}}]}`)
}

// numbered is a document unlike the others.
func numbered(number string) document {
	return document(`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
		"Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/` + number + `"}]}`)
}

// decoded is a document as it comes in answers.
func decoded(answer *string) document {
	if answer == nil {
		fail("there is no document")
	}
	return document(must(url.QueryUnescape(*answer)))
}

func (text document) parsed() map[string]any {
	var value map[string]any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		fail("%s is no policy: %s", string(text), err)
	}
	return value
}

func encoded(value any) string {
	return string(must(json.Marshal(value)))
}

// sorted is how managed policies and those of roles' trust are sent: with their names in order.
func (text document) sorted() *string {
	sent := encoded(text.parsed())
	return &sent
}

// versionFirst is how inline policies are sent.
func (text document) versionFirst() *string {
	value := text.parsed()
	version := encoded(value["Version"])
	delete(value, "Version")
	sent := `{"Version":` + version + "," + encoded(value)[1:]
	return &sent
}

// equals does not tell a text from a list of one, nor the orders of lists.
func (text document) equals(other document) bool {
	return reflect.DeepEqual(plain("", text.parsed()), plain("", other.parsed()))
}

func plain(name string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		all := map[string]any{}
		for inner, member := range value {
			// An empty Sid is as good as none.
			if member != "" || inner != "Sid" {
				all[inner] = plain(inner, member)
			}
		}
		if name == "Statement" {
			return []string{encoded(all)}
		}
		return all
	case []any:
		all := []string{}
		for _, member := range value {
			all = append(all, encoded(plain("", member)))
		}
		slices.Sort(all)
		return all
	case string:
		if name == "Version" || name == "Effect" || name == "Sid" || name == "" {
			return value
		}
		return []string{encoded(value)}
	}
	return value
}
