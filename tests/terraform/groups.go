package main

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// aws_iam_group.
func groupLife() life {
	read := func(id string) attributes {
		found, err := client.GetGroup(ctx, &iam.GetGroupInput{GroupName: &id})
		if gone(err) {
			return nil
		}
		group := must(found, err).Group
		return attributes{
			"arn":       aws.ToString(group.Arn),
			"name":      aws.ToString(group.GroupName),
			"path":      aws.ToString(group.Path),
			"unique_id": aws.ToString(group.GroupId),
		}
	}
	return life{
		stages: []attributes{
			{"name": "tf-group", "path": "/"},
			{"name": "tf-group", "path": "/lab/"},
			{"name": "tf-Group2", "path": "/lab/"},
		},
		create: func(wanted attributes) string {
			made := must(client.CreateGroup(ctx,
				&iam.CreateGroupInput{GroupName: wanted.text("name"), Path: wanted.text("path")}))
			id := aws.ToString(made.Group.GroupName)
			mustHave(wanted, read(id))
			return id
		},
		read: read,
		// All three are always sent.
		update: func(_ string, old, wanted attributes) string {
			done(client.UpdateGroup(ctx, &iam.UpdateGroupInput{GroupName: old.text("name"),
				NewGroupName: wanted.text("name"), NewPath: wanted.text("path")}))
			return wanted["name"].(string)
		},
		imports: func(string) {},
		destroy: func(id string, _ attributes) {
			doneOrGone(client.DeleteGroup(ctx, &iam.DeleteGroupInput{GroupName: &id}))
		},
	}
}

func join(user, group string) {
	done(client.AddUserToGroup(ctx, &iam.AddUserToGroupInput{UserName: &user, GroupName: &group}))
}

func leave(user, group string) {
	doneOrGone(client.RemoveUserFromGroup(ctx,
		&iam.RemoveUserFromGroupInput{UserName: &user, GroupName: &group}))
}

// membersOf is nil where there is no such group.
func membersOf(group string) set {
	names := pages(iam.NewGetGroupPaginator(client, &iam.GetGroupInput{GroupName: &group}),
		func(page *iam.GetGroupOutput) []string {
			names := []string{}
			for _, user := range page.Users {
				names = append(names, aws.ToString(user.UserName))
			}
			return names
		})
	if names == nil {
		return nil
	}
	return setOf(names...)
}

// newGroup makes a group that a configuration refers to.
func newGroup(name string) {
	done(client.CreateGroup(ctx, &iam.CreateGroupInput{GroupName: &name}))
}

// aws_iam_group_membership, which no import is for.
func membershipLife() life {
	group := "tf-members"
	newGroup(group)
	for _, name := range []string{"tf-ann", "tf-bob", "tf-Cy"} {
		newUser(name)
	}
	return life{
		stages: []attributes{
			{"users": setOf("tf-ann", "tf-bob")},
			{"users": setOf("tf-bob", "tf-Cy")},
			{"users": setOf("tf-ann", "tf-bob", "tf-Cy")},
		},
		create: func(wanted attributes) string {
			for _, user := range wanted["users"].(set) {
				join(user, group)
			}
			return "membership"
		},
		read: func(string) attributes {
			// A group without members is as good as no membership.
			if members := membersOf(group); len(members) > 0 {
				return attributes{"users": members}
			}
			return nil
		},
		update: func(id string, old, wanted attributes) string {
			before, after := old["users"].(set), wanted["users"].(set)
			for _, user := range before.minus(after) {
				leave(user, group)
			}
			for _, user := range after.minus(before) {
				join(user, group)
			}
			return id
		},
		destroy: func(_ string, state attributes) {
			for _, user := range state["users"].(set) {
				leave(user, group)
			}
		},
	}
}

// aws_iam_group_policy_attachment.
func groupAttachmentLife() life {
	group, policy := "tf-attached-group", newPolicy("tf-group-attached")
	newGroup(group)
	attached := func() []types.AttachedPolicy {
		return pages(iam.NewListAttachedGroupPoliciesPaginator(client,
			&iam.ListAttachedGroupPoliciesInput{GroupName: &group}),
			func(page *iam.ListAttachedGroupPoliciesOutput) []types.AttachedPolicy { return page.AttachedPolicies })
	}
	return life{
		stages: []attributes{{"policy_arn": policy}},
		create: func(attributes) string {
			done(client.AttachGroupPolicy(ctx,
				&iam.AttachGroupPolicyInput{GroupName: &group, PolicyArn: &policy}))
			return group + "/" + policy
		},
		read:    func(string) attributes { return attachment(attached(), policy) },
		imports: func(string) {},
		destroy: func(string, attributes) {
			doneOrGone(client.DetachGroupPolicy(ctx,
				&iam.DetachGroupPolicyInput{GroupName: &group, PolicyArn: &policy}))
		},
	}
}

// aws_iam_group_policy.
func groupPolicyLife() life {
	group, policy := "tf-inline-group", "read-only"
	newGroup(group)
	read := func(string) attributes {
		found, err := client.GetGroupPolicy(ctx,
			&iam.GetGroupPolicyInput{GroupName: &group, PolicyName: &policy})
		if gone(err) {
			return nil
		}
		return attributes{"policy": decoded(must(found, err).PolicyDocument)}
	}
	put := func(wanted attributes) {
		done(client.PutGroupPolicy(ctx, &iam.PutGroupPolicyInput{GroupName: &group, PolicyName: &policy,
			PolicyDocument: wanted["policy"].(document).versionFirst()}))
	}
	return life{
		stages: []attributes{{"policy": readOnly}, {"policy": readWrite}},
		create: func(wanted attributes) string {
			put(wanted)
			mustHave(wanted, read(""))
			return group + ":" + policy
		},
		read:    read,
		update:  func(id string, _, wanted attributes) string { put(wanted); return id },
		imports: func(string) {},
		destroy: func(string, attributes) {
			doneOrGone(client.DeleteGroupPolicy(ctx,
				&iam.DeleteGroupPolicyInput{GroupName: &group, PolicyName: &policy}))
		},
	}
}

// aws_iam_user_group_membership. Groups that it does not name are not its concern.
func userGroupsLife() life {
	user, others := "tf-groups", "tf-other-group"
	newUser(user)
	for _, name := range []string{"tf-one", "tf-two", "tf-three", others} {
		newGroup(name)
	}
	join(user, others)
	return life{
		stages: []attributes{{"groups": setOf("tf-one", "tf-two")}, {"groups": setOf("tf-three", "tf-two")}},
		create: func(wanted attributes) string {
			for _, group := range wanted["groups"].(set) {
				join(user, group)
			}
			return user
		},
		read: func(string) attributes {
			names := []string{}
			for _, group := range groupsOf(user) {
				if name := aws.ToString(group.GroupName); name != others {
					names = append(names, name)
				}
			}
			if len(names) == 0 {
				return nil
			}
			return attributes{"groups": setOf(names...)}
		},
		update: func(id string, old, wanted attributes) string {
			before, after := old["groups"].(set), wanted["groups"].(set)
			for _, group := range before.minus(after) {
				leave(user, group)
			}
			for _, group := range after.minus(before) {
				join(user, group)
			}
			return id
		},
		imports: func(string) {},
		destroy: func(_ string, state attributes) {
			for _, group := range state["groups"].(set) {
				leave(user, group)
			}
		},
	}
}
