package main

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// aws_iam_user, with `force_destroy`.
func userLife() life {
	boundary, other := newPolicy("tf-user-boundary"), newPolicy("tf-user-other")
	return life{
		stages: []attributes{
			{"name": "tf-user", "path": "/staff/eu/", "permissions_boundary": boundary,
				"tags": tags{"team": "a", "cost centre": "1+1=2", "gone": "soon"}},
			{"name": "tf-user", "path": "/staff/eu/", "permissions_boundary": other,
				"tags": tags{"team": "b", "cost centre": "1+1=2", "new": ""}},
			{"name": "tf-renamed", "path": "/", "permissions_boundary": "", "tags": tags{}},
			{"name": "tf-renamed", "path": "/", "permissions_boundary": boundary,
				"tags": tags{"team": "c"}},
		},
		create: createUser,
		read:   readUser,
		update: updateUser,
		// Keys and policies that Terraform knows nothing of.
		meanwhile: func(id string) {
			name := aws.String(id)
			done(client.CreateGroup(ctx, &iam.CreateGroupInput{GroupName: aws.String("tf-user-group")}))
			done(client.AddUserToGroup(ctx, &iam.AddUserToGroupInput{
				GroupName: aws.String("tf-user-group"), UserName: name}))
			done(client.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: name}))
			done(client.AttachUserPolicy(ctx, &iam.AttachUserPolicyInput{
				UserName: name, PolicyArn: aws.String(other)}))
			done(client.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: name,
				PolicyName: aws.String("by-hand"), PolicyDocument: readOnly.versionFirst()}))
		},
		imports: func(string) {},
		destroy: func(id string, _ attributes) { leaveGroups(id); emptyUser(id); deleteUser(id) },
	}
}

func createUser(wanted attributes) string {
	made := must(client.CreateUser(ctx, &iam.CreateUserInput{
		Path:                wanted.text("path"),
		Tags:                wanted["tags"].(tags).list(),
		UserName:            wanted.text("name"),
		PermissionsBoundary: wanted.text("permissions_boundary"),
	}))
	return aws.ToString(made.User.UserName)
}

func boundaryOf(attached *types.AttachedPermissionsBoundary) string {
	if attached == nil {
		return ""
	}
	return aws.ToString(attached.PermissionsBoundaryArn)
}

func readUser(id string) attributes {
	found, err := client.GetUser(ctx, &iam.GetUserInput{UserName: &id})
	if gone(err) {
		return nil
	}
	user := must(found, err).User
	return attributes{
		"arn":                  aws.ToString(user.Arn),
		"name":                 aws.ToString(user.UserName),
		"path":                 aws.ToString(user.Path),
		"permissions_boundary": boundaryOf(user.PermissionsBoundary),
		"unique_id":            aws.ToString(user.UserId),
		"tags":                 tagsOf(user.Tags),
	}
}

func updateUser(id string, old, wanted attributes) string {
	retag(old, wanted,
		func(keys []string) {
			done(client.UntagUser(ctx, &iam.UntagUserInput{UserName: &id, TagKeys: keys}))
		},
		func(list []types.Tag) {
			done(client.TagUser(ctx, &iam.TagUserInput{UserName: &id, Tags: list}))
		})
	name := id
	if changed(old, wanted, "name", "path") {
		name = wanted["name"].(string)
		done(client.UpdateUser(ctx, &iam.UpdateUserInput{
			UserName: old.text("name"), NewUserName: &name, NewPath: wanted.text("path")}))
	}
	if changed(old, wanted, "permissions_boundary") {
		if boundary := wanted.text("permissions_boundary"); boundary != nil {
			done(client.PutUserPermissionsBoundary(ctx, &iam.PutUserPermissionsBoundaryInput{
				UserName: &name, PermissionsBoundary: boundary}))
		} else {
			done(client.DeleteUserPermissionsBoundary(ctx,
				&iam.DeleteUserPermissionsBoundaryInput{UserName: &name}))
		}
	}
	return name
}

// leaveGroups comes before every deletion of a user.
func leaveGroups(id string) {
	for _, group := range groupsOf(id) {
		leave(id, aws.ToString(group.GroupName))
	}
}

func groupsOf(user string) []types.Group {
	return pages(iam.NewListGroupsForUserPaginator(client, &iam.ListGroupsForUserInput{UserName: &user}),
		func(page *iam.ListGroupsForUserOutput) []types.Group { return page.Groups })
}

// emptyUser is `force_destroy`. What a user has not, such as MFA devices, is asked for too.
func emptyUser(id string) {
	inline := pages(iam.NewListUserPoliciesPaginator(client, &iam.ListUserPoliciesInput{UserName: &id}),
		func(page *iam.ListUserPoliciesOutput) []string { return page.PolicyNames })
	for _, name := range inline {
		done(client.DeleteUserPolicy(ctx, &iam.DeleteUserPolicyInput{UserName: &id, PolicyName: &name}))
	}
	for _, attached := range attachedToUser(id) {
		detachFromUser(id, aws.ToString(attached.PolicyArn))
	}
	for _, key := range accessKeys(id) {
		done(client.DeleteAccessKey(ctx,
			&iam.DeleteAccessKeyInput{UserName: &id, AccessKeyId: key.AccessKeyId}))
	}
	ssh := pages(iam.NewListSSHPublicKeysPaginator(client, &iam.ListSSHPublicKeysInput{UserName: &id}),
		func(page *iam.ListSSHPublicKeysOutput) []types.SSHPublicKeyMetadata { return page.SSHPublicKeys })
	virtual := pages(iam.NewListVirtualMFADevicesPaginator(client,
		&iam.ListVirtualMFADevicesInput{AssignmentStatus: types.AssignmentStatusTypeAssigned}),
		func(page *iam.ListVirtualMFADevicesOutput) []types.VirtualMFADevice { return page.VirtualMFADevices })
	devices := pages(iam.NewListMFADevicesPaginator(client, &iam.ListMFADevicesInput{UserName: &id}),
		func(page *iam.ListMFADevicesOutput) []types.MFADevice { return page.MFADevices })
	doneOrGone(client.DeleteLoginProfile(ctx, &iam.DeleteLoginProfileInput{UserName: &id}))
	certificates := pages(iam.NewListSigningCertificatesPaginator(client,
		&iam.ListSigningCertificatesInput{UserName: &id}),
		func(page *iam.ListSigningCertificatesOutput) []types.SigningCertificate { return page.Certificates })
	special, err := client.ListServiceSpecificCredentials(ctx,
		&iam.ListServiceSpecificCredentialsInput{UserName: &id})
	if !gone(err) && len(must(special, err).ServiceSpecificCredentials) > 0 {
		fail("there are service-specific credentials")
	}
	if len(ssh)+len(virtual)+len(devices)+len(certificates) > 0 {
		fail("%s has what there is not: %v %v %v %v", id, ssh, virtual, devices, certificates)
	}
}

func deleteUser(id string) {
	doneOrGone(client.DeleteUser(ctx, &iam.DeleteUserInput{UserName: &id}))
}

// newUser makes a user that a configuration refers to.
func newUser(name string) {
	done(client.CreateUser(ctx, &iam.CreateUserInput{UserName: &name}))
}

func accessKeys(user string) []types.AccessKeyMetadata {
	return pages(iam.NewListAccessKeysPaginator(client, &iam.ListAccessKeysInput{UserName: &user}),
		func(page *iam.ListAccessKeysOutput) []types.AccessKeyMetadata { return page.AccessKeyMetadata })
}

// aws_iam_access_key. What CreateAccessKey says of the key is not read again.
func accessKeyLife() life {
	user := "tf-keys"
	newUser(user)
	var made types.AccessKey
	setStatus := func(id string, status any) {
		done(client.UpdateAccessKey(ctx, &iam.UpdateAccessKeyInput{
			UserName: &user, AccessKeyId: &id, Status: types.StatusType(status.(string))}))
	}
	read := func(id string) attributes {
		for _, key := range accessKeys(user) {
			if aws.ToString(key.AccessKeyId) == id {
				return attributes{
					"create_date": key.CreateDate.Format(time.RFC3339),
					"status":      string(key.Status),
					"user":        aws.ToString(key.UserName),
				}
			}
		}
		return nil
	}
	return life{
		stages: []attributes{
			{"user": user, "status": "Active"},
			{"user": user, "status": "Inactive"},
			{"user": user, "status": "Active"},
		},
		create: func(wanted attributes) string {
			made = *must(client.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: &user})).AccessKey
			id := aws.ToString(made.AccessKeyId)
			if aws.ToString(made.SecretAccessKey) == "" {
				fail("the answer has no secret")
			}
			mustHave(attributes{
				"create_date": made.CreateDate.Format(time.RFC3339),
				"status":      string(made.Status),
				"user":        aws.ToString(made.UserName),
			}, read(id))
			// A provider that has the new key.
			accountOf(stsAs(credentials.NewStaticCredentialsProvider(id, *made.SecretAccessKey, "")))
			return id
		},
		read: read,
		update: func(id string, _, wanted attributes) string {
			setStatus(id, wanted["status"])
			return id
		},
		imports: func(id string) {
			used := must(client.GetAccessKeyLastUsed(ctx, &iam.GetAccessKeyLastUsedInput{AccessKeyId: &id}))
			if aws.ToString(used.UserName) != user {
				fail("GetAccessKeyLastUsed has the user %q", aws.ToString(used.UserName))
			}
		},
		destroy: func(id string, _ attributes) {
			doneOrGone(client.DeleteAccessKey(ctx,
				&iam.DeleteAccessKeyInput{UserName: &user, AccessKeyId: &id}))
		},
	}
}

// aws_iam_user_policy.
func userPolicyLife() life {
	user, policy := "tf-inline", "read-only@all,+=."
	newUser(user)
	read := func(string) attributes {
		found, err := client.GetUserPolicy(ctx, &iam.GetUserPolicyInput{UserName: &user, PolicyName: &policy})
		if gone(err) {
			return nil
		}
		return attributes{"policy": decoded(must(found, err).PolicyDocument)}
	}
	put := func(wanted attributes) {
		done(client.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: &user, PolicyName: &policy,
			PolicyDocument: wanted["policy"].(document).versionFirst()}))
	}
	return life{
		stages: []attributes{{"policy": readOnly}, {"policy": readWrite}},
		create: func(wanted attributes) string {
			put(wanted)
			mustHave(wanted, read(""))
			return user + ":" + policy
		},
		read:    read,
		update:  func(id string, _, wanted attributes) string { put(wanted); return id },
		imports: func(string) {},
		destroy: func(string, attributes) {
			doneOrGone(client.DeleteUserPolicy(ctx,
				&iam.DeleteUserPolicyInput{UserName: &user, PolicyName: &policy}))
		},
	}
}

func attachedToUser(user string) []types.AttachedPolicy {
	return pages(iam.NewListAttachedUserPoliciesPaginator(client,
		&iam.ListAttachedUserPoliciesInput{UserName: &user}),
		func(page *iam.ListAttachedUserPoliciesOutput) []types.AttachedPolicy { return page.AttachedPolicies })
}

func detachFromUser(user, policy string) {
	doneOrGone(client.DetachUserPolicy(ctx,
		&iam.DetachUserPolicyInput{UserName: &user, PolicyArn: &policy}))
}

// attachment finds a policy in a list of those that are attached.
func attachment(attached []types.AttachedPolicy, policy string) attributes {
	for _, one := range attached {
		if aws.ToString(one.PolicyArn) == policy {
			return attributes{"policy_arn": policy}
		}
	}
	return nil
}

// aws_iam_user_policy_attachment.
func userAttachmentLife() life {
	user, policy := "tf-attached", newPolicy("tf-user-attached")
	newUser(user)
	return life{
		stages: []attributes{{"policy_arn": policy}},
		create: func(attributes) string {
			done(client.AttachUserPolicy(ctx,
				&iam.AttachUserPolicyInput{UserName: &user, PolicyArn: &policy}))
			return user + "/" + policy
		},
		read:    func(string) attributes { return attachment(attachedToUser(user), policy) },
		imports: func(string) {},
		destroy: func(string, attributes) { detachFromUser(user, policy) },
	}
}
