package main

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

// accountOf validates credentials, and takes the account from the ARN of the caller.
func accountOf(client *sts.Client) string {
	return accountIn(must(client.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})).Arn)
}

func accountIn(name *string) string {
	parsed := must(arn.Parse(aws.ToString(name)))
	if parsed.Partition != "aws" || len(parsed.AccountID) != 12 {
		fail("%s has no account", aws.ToString(name))
	}
	return parsed.AccountID
}

// accountOfUser is asked first with `skip_credentials_validation`. Three errors say that there is
// no user, and STS is asked next; another would end it.
func accountOfUser(client *iam.Client) (string, bool) {
	found, err := client.GetUser(ctx, &iam.GetUserInput{})
	var refused smithy.APIError
	if errors.As(err, &refused) {
		switch refused.ErrorCode() {
		case "AccessDenied", "InvalidClientTokenId", "ValidationError":
			return "", false
		}
	}
	return accountIn(must(found, err).User.Arn), true
}

// accountOfRoles is the last thing that is tried.
func accountOfRoles(client *iam.Client) string {
	roles := must(client.ListRoles(ctx, &iam.ListRolesInput{MaxItems: aws.Int32(1)})).Roles
	if len(roles) != 1 {
		fail("%d roles, not one", len(roles))
	}
	return accountIn(roles[0].Arn)
}

// start is what comes before anything else.
func start() {
	var account string
	step("validate credentials", func() { account = accountOf(stsAs(own)) })
	step("without validation", func() {
		if found, ok := accountOfUser(client); ok && found != account {
			fail("the account is %s, then %s", account, found)
		}
	})
	step("by roles", func() {
		_, err := client.CreateRole(ctx, &iam.CreateRoleInput{
			RoleName: aws.String("tf-start"), AssumeRolePolicyDocument: ec2Trust.sorted()})
		if err != nil && !isA[*types.EntityAlreadyExistsException](err) {
			fail("%s", err)
		}
		if accountOfRoles(client) != account {
			fail("roles have another account than %s", account)
		}
	})
}

// assumed is a provider with an `assume_role` block.
func assumed() {
	account := accountOf(stsAs(own))
	role := newRole("tf-assumed", trustIn(account))
	putRolePolicy("tf-assumed", "all", document(
		`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "iam:*", "Resource": "*"}]}`))
	var session aws.CredentialsProvider
	step("assume a role", func() {
		session = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(stsAs(own), role,
			func(options *stscreds.AssumeRoleOptions) {
				options.Duration = time.Hour
				options.ExternalID = aws.String("lab-7")
				options.RoleSessionName = "terraform"
			}))
		if accountOf(stsAs(session)) != account {
			fail("the session has another account than %s", account)
		}
	})
	step("without validation", func() {
		if found, ok := accountOfUser(iamAs(session)); ok {
			fail("a session is no user, but it is %s", found)
		}
	})
	step("by roles", func() {
		if accountOfRoles(iamAs(session)) != account {
			fail("roles have another account than %s", account)
		}
	})
	client = iamAs(session)
	step("a user by the role", func() {
		wanted := attributes{"name": "tf-by-role", "path": "/", "permissions_boundary": "", "tags": tags{}}
		id := createUser(wanted)
		mustHave(wanted, readUser(id))
		leaveGroups(id)
		emptyUser(id)
		deleteUser(id)
	})
}

// dataSources are the ones of what there is: aws_caller_identity, aws_iam_policy, aws_iam_role and
// aws_iam_user.
func dataSources() {
	wanted := attributes{"name": "tf-data", "path": "/data/", "description": "d", "policy": readOnly,
		"tags": tags{"a": "b"}}
	policy := createPolicy(wanted)
	newRole("tf-data", ec2Trust)
	newUser("tf-data")
	step("aws_caller_identity", func() {
		caller := must(stsAs(own).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))
		if accountIn(caller.Arn) != aws.ToString(caller.Account) || aws.ToString(caller.UserId) == "" {
			fail("%v %v %v", caller.Arn, caller.Account, caller.UserId)
		}
	})
	step("aws_iam_policy by its ARN", func() { mustHave(wanted, readPolicy(policy)) })
	step("aws_iam_policy by its name", func() {
		for _, prefix := range []*string{nil, aws.String("/data/")} {
			if found := policyNamed("tf-data", prefix); found != policy {
				fail("%s is %s", policy, found)
			}
			mustHave(wanted, readPolicy(policy))
		}
	})
	step("aws_iam_policy that is built in", func() {
		found := policyNamed("AmazonS3ReadOnlyAccess", nil)
		mustHave(attributes{"arn": "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess", "path": "/"},
			readPolicy(found))
		attachToRole("tf-data", found)
		mustHave(attributes{"policy_arn": found}, attachment(attachedToRole("tf-data"), found))
		detachFromRole("tf-data", found)
	})
	step("aws_iam_role", func() {
		role := must(client.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String("tf-data")})).Role
		if !decoded(role.AssumeRolePolicyDocument).equals(ec2Trust) || role.CreateDate == nil {
			fail("%v", role)
		}
	})
	step("aws_iam_user", func() { mustHave(attributes{"name": "tf-data"}, readUser("tf-data")) })
	step("what is not there", func() {
		if found := readUser("tf-none"); found != nil {
			fail("%v", found)
		}
	})
}

// policyNamed looks at all policies that there are, those that are built in among them.
func policyNamed(name string, prefix *string) string {
	all := pages(iam.NewListPoliciesPaginator(client, &iam.ListPoliciesInput{PathPrefix: prefix}),
		func(page *iam.ListPoliciesOutput) []types.Policy { return page.Policies })
	found := []string{}
	for _, one := range all {
		if aws.ToString(one.PolicyName) == name {
			found = append(found, aws.ToString(one.Arn))
		}
	}
	if len(found) != 1 {
		fail("%s are called %s", found, name)
	}
	return found[0]
}
