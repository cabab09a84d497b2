package main

import (
	"fmt"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// Terraform does ten things at once.
const workers = 10

// together does something for ten numbers at the same time.
func together(do func(number string)) {
	failures := make([]string, workers)
	var group sync.WaitGroup
	for number := range workers {
		group.Go(func() {
			defer func() {
				if thrown := recover(); thrown != nil {
					failures[number] = fmt.Sprint(thrown)
				}
			}()
			do(fmt.Sprint(number))
		})
	}
	group.Wait()
	if all := strings.TrimSpace(strings.Join(failures, "\n")); all != "" {
		fail("%s", all)
	}
}

// parallel applies a configuration of many resources, some of which are about the same group and
// role, as Terraform does: ten at once. Of all that, the provider would repeat little.
func parallel() {
	group, role := "tf-parallel", "tf-parallel"
	newGroup(group)
	newRole(role, ec2Trust)
	user := func(number string) string { return "tf-parallel-" + number }
	arns := sync.Map{}
	// Of policy and user alike.
	wanted := func(number string) attributes {
		return attributes{"name": user(number), "path": "/", "description": "",
			"policy": numbered(number), "tags": tags{"number": number}}
	}
	step("apply", func() {
		together(func(number string) {
			arn := createPolicy(wanted(number))
			arns.Store(number, arn)
			mustHave(wanted(number), readPolicy(arn))
			name := createUser(wanted(number))
			join(name, group)
			attachToRole(role, arn)
			putRolePolicy(role, name, numbered(number))
			done(client.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: &name, PolicyName: &name,
				PolicyDocument: numbered(number).versionFirst()}))
			done(client.AttachUserPolicy(ctx, &iam.AttachUserPolicyInput{UserName: &name, PolicyArn: &arn}))
			done(client.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: &name}))
		})
	})
	step("plan", func() {
		together(func(number string) {
			arn, _ := arns.Load(number)
			mustHave(attributes{"policy_arn": arn}, attachment(attachedToRole(role), arn.(string)))
			mustHave(attributes{"policy_arn": arn}, attachment(attachedToUser(user(number)), arn.(string)))
			mustHave(attributes{"tags": tags{"number": number}}, readUser(user(number)))
			if text := rolePolicy(role, user(number)); text == nil || !text.equals(numbered(number)) {
				fail("the role's policy %s is %v", number, text)
			}
			if len(membersOf(group)) != workers || len(accessKeys(user(number))) != 1 {
				fail("the group has %v", membersOf(group))
			}
		})
	})
	step("destroy", func() {
		together(func(number string) {
			name := user(number)
			arn, _ := arns.Load(number)
			detachFromRole(role, arn.(string))
			deleteRolePolicy(role, name)
			leaveGroups(name)
			emptyUser(name)
			deleteUser(name)
			deletePolicy(arn.(string), nil)
		})
		deleteRole(role, false)
		done(client.DeleteGroup(ctx, &iam.DeleteGroupInput{GroupName: &group}))
	})
}
