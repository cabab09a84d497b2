package main

import (
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"
)

// aws_iam_openid_connect_provider. The URL comes back without its scheme, and counts as the same.
func providerLife() life {
	url := "https://idp.lab.test/realms/tf"
	thumbs := func(letter string) []string { return []string{strings.Repeat(letter, 40)} }
	read := func(id string) attributes {
		found, err := client.GetOpenIDConnectProvider(ctx,
			&iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: &id})
		if gone(err) {
			return nil
		}
		provider := must(found, err)
		return attributes{
			"url":             "https://" + strings.TrimPrefix(aws.ToString(provider.Url), "https://"),
			"client_id_list":  setOf(provider.ClientIDList...),
			"thumbprint_list": provider.ThumbprintList,
			"tags":            tagsOf(provider.Tags),
		}
	}
	return life{
		stages: []attributes{
			{"url": url, "client_id_list": setOf("one", "two"), "thumbprint_list": thumbs("a"),
				"tags": tags{"team": "a", "gone": "soon"}},
			{"url": url, "client_id_list": setOf("three", "two"), "thumbprint_list": thumbs("b"),
				"tags": tags{"team": "b"}},
		},
		create: func(wanted attributes) string {
			made := must(client.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{
				ClientIDList:   wanted["client_id_list"].(set),
				Tags:           wanted["tags"].(tags).list(),
				Url:            wanted.text("url"),
				ThumbprintList: wanted["thumbprint_list"].([]string),
			}))
			return aws.ToString(made.OpenIDConnectProviderArn)
		},
		read:    read,
		update:  updateProvider,
		imports: func(string) {},
		destroy: func(id string, _ attributes) {
			doneOrGone(client.DeleteOpenIDConnectProvider(ctx,
				&iam.DeleteOpenIDConnectProviderInput{OpenIDConnectProviderArn: &id}))
		},
	}
}

func updateProvider(id string, old, wanted attributes) string {
	retag(old, wanted,
		func(keys []string) {
			done(client.UntagOpenIDConnectProvider(ctx,
				&iam.UntagOpenIDConnectProviderInput{OpenIDConnectProviderArn: &id, TagKeys: keys}))
		},
		func(list []types.Tag) {
			done(client.TagOpenIDConnectProvider(ctx,
				&iam.TagOpenIDConnectProviderInput{OpenIDConnectProviderArn: &id, Tags: list}))
		})
	if changed(old, wanted, "thumbprint_list") {
		done(client.UpdateOpenIDConnectProviderThumbprint(ctx,
			&iam.UpdateOpenIDConnectProviderThumbprintInput{
				OpenIDConnectProviderArn: &id, ThumbprintList: wanted["thumbprint_list"].([]string)}))
	}
	before, after := old["client_id_list"].(set), wanted["client_id_list"].(set)
	for _, name := range after.minus(before) {
		done(client.AddClientIDToOpenIDConnectProvider(ctx, &iam.AddClientIDToOpenIDConnectProviderInput{
			OpenIDConnectProviderArn: &id, ClientID: &name}))
	}
	for _, name := range before.minus(after) {
		done(client.RemoveClientIDFromOpenIDConnectProvider(ctx,
			&iam.RemoveClientIDFromOpenIDConnectProviderInput{
				OpenIDConnectProviderArn: &id, ClientID: &name}))
	}
	return id
}

// aws_iam_account_alias.
func aliasLife() life {
	return life{
		stages: []attributes{{"account_alias": "tf-lab"}},
		create: func(wanted attributes) string {
			done(client.CreateAccountAlias(ctx,
				&iam.CreateAccountAliasInput{AccountAlias: wanted.text("account_alias")}))
			return wanted["account_alias"].(string)
		},
		read: func(string) attributes {
			found := pages(iam.NewListAccountAliasesPaginator(client, &iam.ListAccountAliasesInput{}),
				func(page *iam.ListAccountAliasesOutput) []string { return page.AccountAliases })
			switch len(found) {
			case 0:
				return nil
			case 1:
				return attributes{"account_alias": found[0]}
			}
			fail("the account has the aliases %v", found)
			return nil
		},
		imports: func(string) {},
		destroy: func(id string, _ attributes) {
			doneOrGone(client.DeleteAccountAlias(ctx, &iam.DeleteAccountAliasInput{AccountAlias: &id}))
		},
	}
}

// What a configuration without `force_destroy` or `force_detach_policies` ends with. The provider
// goes by the types of the errors: it tries again for a role, and tells of the user's.
func conflicts() {
	policy := newPolicy("tf-conflict")
	step("a user with an access key", func() {
		name := "tf-conflict"
		newUser(name)
		done(client.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: &name}))
		leaveGroups(name)
		_, err := client.DeleteUser(ctx, &iam.DeleteUserInput{UserName: &name})
		mustConflict(err)
	})
	step("a role with a policy", func() {
		name := "tf-conflict"
		newRole(name, ec2Trust)
		attachToRole(name, policy)
		_, err := client.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &name})
		mustConflict(err)
	})
	step("a policy that is attached", func() {
		if count := readPolicy(policy)["attachment_count"]; count != int32(1) {
			fail("it is attached %v times", count)
		}
		_, err := client.DeletePolicy(ctx, &iam.DeletePolicyInput{PolicyArn: &policy})
		mustConflict(err)
	})
	step("what is there already", func() {
		_, err := client.CreateUser(ctx, &iam.CreateUserInput{UserName: aws.String("tf-conflict")})
		if !isA[*types.EntityAlreadyExistsException](err) {
			fail("not EntityAlreadyExists: %v", err)
		}
	})
	step("a policy that is none", func() {
		_, err := client.CreatePolicy(ctx, &iam.CreatePolicyInput{
			PolicyName: aws.String("tf-none"), PolicyDocument: aws.String(`{"Version": "2012-10-17"}`)})
		if !isA[*types.MalformedPolicyDocumentException](err) {
			fail("not MalformedPolicyDocument: %v", err)
		}
	})
	step("a resource that is not served", func() {
		// By a client that would try again, as the provider's does.
		options := client.Options()
		options.RetryMaxAttempts = 3
		_, err := iam.New(options).CreateInstanceProfile(ctx,
			&iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("tf-none")})
		var refused smithy.APIError
		if !errors.As(err, &refused) || refused.ErrorCode() != "NotImplemented" {
			fail("not NotImplemented: %v", err)
		}
		if isA[*retry.MaxAttemptsError](err) {
			fail("it is tried again: %v", err)
		}
	})
}

func mustConflict(err error) {
	if !isA[*types.DeleteConflictException](err) {
		fail("not DeleteConflict: %v", err)
	}
}
