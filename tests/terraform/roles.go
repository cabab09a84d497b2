package main

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// Inline policies of a role, by their names.
type inline map[string]document

func (wanted inline) equals(found inline) bool {
	for name, text := range wanted {
		if other, ok := found[name]; !ok || !text.equals(other) {
			return false
		}
	}
	return len(wanted) == len(found)
}

// aws_iam_role with `inline_policy` and `managed_policy_arns`, and `force_detach_policies`.
func roleLife() life {
	account := accountOf(stsAs(own))
	boundary, first, second := newPolicy("tf-role-boundary"), newPolicy("tf-role-one"), newPolicy("tf-role-two")
	return life{
		stages: []attributes{
			{"name": "tf-role", "path": "/service/", "description": "Reads, née \"+1%\" <&>",
				"assume_role_policy": trustIn(account), "max_session_duration": int32(7200),
				"permissions_boundary": boundary, "tags": tags{"team": "a", "gone": "soon"},
				"managed_policy_arns": setOf(first), "inline_policy": inline{"a": readOnly, "b": readWrite}},
			{"name": "tf-role", "path": "/service/", "description": "",
				"assume_role_policy": ec2Trust, "max_session_duration": int32(3600),
				"permissions_boundary": "", "tags": tags{"team": "b"},
				"managed_policy_arns": setOf(second), "inline_policy": inline{"b": readOnly, "c": readOnly}},
			{"name": "tf-role", "path": "/service/", "description": "Again",
				"assume_role_policy": ec2Trust, "max_session_duration": int32(3600),
				"permissions_boundary": boundary, "tags": tags{},
				"managed_policy_arns": setOf(first, second), "inline_policy": inline{}},
			{"name": "tf-role", "path": "/service/", "description": "Again",
				"assume_role_policy": ec2Trust, "max_session_duration": int32(43200),
				"permissions_boundary": boundary, "tags": tags{},
				"managed_policy_arns": setOf(), "inline_policy": inline{}},
		},
		create:  createRole,
		read:    readRole,
		update:  updateRole,
		imports: func(string) {},
		destroy: func(id string, _ attributes) { deleteRole(id, true) },
	}
}

func createRole(wanted attributes) string {
	duration := wanted["max_session_duration"].(int32)
	made := must(client.CreateRole(ctx, &iam.CreateRoleInput{
		AssumeRolePolicyDocument: wanted["assume_role_policy"].(document).sorted(),
		Path:                     wanted.text("path"),
		RoleName:                 wanted.text("name"),
		Tags:                     wanted["tags"].(tags).list(),
		Description:              wanted.text("description"),
		MaxSessionDuration:       &duration,
		PermissionsBoundary:      wanted.text("permissions_boundary"),
	}))
	id := aws.ToString(made.Role.RoleName)
	for name, text := range wanted["inline_policy"].(inline) {
		putRolePolicy(id, name, text)
	}
	for _, policy := range wanted["managed_policy_arns"].(set) {
		attachToRole(id, policy)
	}
	return id
}

// newRole makes a role that a configuration refers to.
func newRole(name string, trust document) string {
	made := must(client.CreateRole(ctx,
		&iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: trust.sorted()}))
	return aws.ToString(made.Role.Arn)
}

func readRole(id string) attributes {
	found, err := client.GetRole(ctx, &iam.GetRoleInput{RoleName: &id})
	if gone(err) {
		return nil
	}
	role := must(found, err).Role
	// The provider would wait for one.
	if !arn.IsARN(aws.ToString(role.Arn)) {
		fail("%s is no ARN", aws.ToString(role.Arn))
	}
	policies := inline{}
	for _, name := range inlineOfRole(id) {
		policies[name] = *rolePolicy(id, name)
	}
	managed := []string{}
	for _, attached := range attachedToRole(id) {
		managed = append(managed, aws.ToString(attached.PolicyArn))
	}
	return attributes{
		"arn":                  aws.ToString(role.Arn),
		"create_date":          role.CreateDate.Format(time.RFC3339),
		"description":          aws.ToString(role.Description),
		"max_session_duration": aws.ToInt32(role.MaxSessionDuration),
		"name":                 aws.ToString(role.RoleName),
		"path":                 aws.ToString(role.Path),
		"permissions_boundary": boundaryOf(role.PermissionsBoundary),
		"unique_id":            aws.ToString(role.RoleId),
		"assume_role_policy":   decoded(role.AssumeRolePolicyDocument),
		"tags":                 tagsOf(role.Tags),
		"inline_policy":        policies,
		"managed_policy_arns":  setOf(managed...),
	}
}

func updateRole(id string, old, wanted attributes) string {
	retag(old, wanted,
		func(keys []string) {
			done(client.UntagRole(ctx, &iam.UntagRoleInput{RoleName: &id, TagKeys: keys}))
		},
		func(list []types.Tag) {
			done(client.TagRole(ctx, &iam.TagRoleInput{RoleName: &id, Tags: list}))
		})
	if changed(old, wanted, "assume_role_policy") {
		done(client.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{
			RoleName: &id, PolicyDocument: wanted["assume_role_policy"].(document).sorted()}))
	}
	// A description that is taken away is sent empty.
	if changed(old, wanted, "description") {
		done(client.UpdateRoleDescription(ctx, &iam.UpdateRoleDescriptionInput{
			RoleName: &id, Description: aws.String(wanted["description"].(string))}))
	}
	// Without the description, which must stay.
	if changed(old, wanted, "max_session_duration") {
		duration := wanted["max_session_duration"].(int32)
		done(client.UpdateRole(ctx, &iam.UpdateRoleInput{RoleName: &id, MaxSessionDuration: &duration}))
	}
	if changed(old, wanted, "permissions_boundary") {
		if boundary := wanted.text("permissions_boundary"); boundary != nil {
			done(client.PutRolePermissionsBoundary(ctx, &iam.PutRolePermissionsBoundaryInput{
				RoleName: &id, PermissionsBoundary: boundary}))
		} else {
			done(client.DeleteRolePermissionsBoundary(ctx,
				&iam.DeleteRolePermissionsBoundaryInput{RoleName: &id}))
		}
	}
	updatePoliciesOfRole(id, old, wanted)
	return id
}

func updatePoliciesOfRole(id string, old, wanted attributes) {
	before, after := old["inline_policy"].(inline), wanted["inline_policy"].(inline)
	// A policy that changes is removed and put anew.
	for name, text := range before {
		if now, ok := after[name]; !ok || !text.equals(now) {
			deleteRolePolicy(id, name)
		}
	}
	for name, text := range after {
		if was, ok := before[name]; !ok || !text.equals(was) {
			putRolePolicy(id, name, text)
		}
	}
	managed, now := old["managed_policy_arns"].(set), wanted["managed_policy_arns"].(set)
	for _, policy := range managed.minus(now) {
		detachFromRole(id, policy)
	}
	for _, policy := range now.minus(managed) {
		attachToRole(id, policy)
	}
}

// deleteRole takes policies away first where the configuration has some, or with
// `force_detach_policies`.
func deleteRole(id string, force bool) {
	profiles := pages(iam.NewListInstanceProfilesForRolePaginator(client,
		&iam.ListInstanceProfilesForRoleInput{RoleName: &id}),
		func(page *iam.ListInstanceProfilesForRoleOutput) []types.InstanceProfile {
			return page.InstanceProfiles
		})
	if len(profiles) > 0 {
		fail("%s has instance profiles: %v", id, profiles)
	}
	if force {
		for _, attached := range attachedToRole(id) {
			detachFromRole(id, aws.ToString(attached.PolicyArn))
		}
		for _, name := range inlineOfRole(id) {
			deleteRolePolicy(id, name)
		}
	}
	doneOrGone(client.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &id}))
}

func inlineOfRole(role string) []string {
	return pages(iam.NewListRolePoliciesPaginator(client, &iam.ListRolePoliciesInput{RoleName: &role}),
		func(page *iam.ListRolePoliciesOutput) []string { return page.PolicyNames })
}

func attachedToRole(role string) []types.AttachedPolicy {
	return pages(iam.NewListAttachedRolePoliciesPaginator(client,
		&iam.ListAttachedRolePoliciesInput{RoleName: &role}),
		func(page *iam.ListAttachedRolePoliciesOutput) []types.AttachedPolicy { return page.AttachedPolicies })
}

// rolePolicy is nil where there is no such policy, or no such role.
func rolePolicy(role, policy string) *document {
	found, err := client.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: &role, PolicyName: &policy})
	if gone(err) {
		return nil
	}
	text := decoded(must(found, err).PolicyDocument)
	return &text
}

func putRolePolicy(role, policy string, text document) {
	done(client.PutRolePolicy(ctx, &iam.PutRolePolicyInput{
		RoleName: &role, PolicyName: &policy, PolicyDocument: text.versionFirst()}))
}

func deleteRolePolicy(role, policy string) {
	doneOrGone(client.DeleteRolePolicy(ctx,
		&iam.DeleteRolePolicyInput{RoleName: &role, PolicyName: &policy}))
}

func attachToRole(role, policy string) {
	done(client.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: &role, PolicyArn: &policy}))
}

func detachFromRole(role, policy string) {
	doneOrGone(client.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &role, PolicyArn: &policy}))
}

// aws_iam_role_policy.
func rolePolicyLife() life {
	role, policy := "tf-inline-role", "read-only"
	newRole(role, ec2Trust)
	read := func(string) attributes {
		if text := rolePolicy(role, policy); text != nil {
			return attributes{"policy": *text}
		}
		return nil
	}
	return life{
		stages: []attributes{{"policy": readOnly}, {"policy": readWrite}},
		create: func(wanted attributes) string {
			putRolePolicy(role, policy, wanted["policy"].(document))
			mustHave(wanted, read(""))
			return role + ":" + policy
		},
		read: read,
		update: func(id string, _, wanted attributes) string {
			putRolePolicy(role, policy, wanted["policy"].(document))
			return id
		},
		imports: func(string) {},
		destroy: func(string, attributes) { deleteRolePolicy(role, policy) },
	}
}

// aws_iam_role_policy_attachment.
func roleAttachmentLife() life {
	role, policy := "tf-attached-role", newPolicy("tf-role-attached")
	newRole(role, ec2Trust)
	return life{
		stages:  []attributes{{"policy_arn": policy}},
		create:  func(attributes) string { attachToRole(role, policy); return role + "/" + policy },
		read:    func(string) attributes { return attachment(attachedToRole(role), policy) },
		imports: func(string) {},
		destroy: func(string, attributes) { detachFromRole(role, policy) },
	}
}
