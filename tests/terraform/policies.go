package main

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// IAM keeps five versions of a policy.
const versionsMax = 5

// newPolicy makes a policy that a configuration refers to. Its ARN.
func newPolicy(name string) string {
	made := must(client.CreatePolicy(ctx,
		&iam.CreatePolicyInput{PolicyName: &name, PolicyDocument: readOnly.sorted()}))
	return aws.ToString(made.Policy.Arn)
}

// aws_iam_policy. Its second change is one with `delay_after_policy_creation_in_ms`.
func policyLife() life {
	stages := []attributes{}
	for number := range versionsMax + 3 {
		stages = append(stages, attributes{
			"name": "tf-policy", "path": "/tf/", "description": "Reads + writes",
			"policy": numbered(strconv.Itoa(number)), "tags": tags{"version": strconv.Itoa(number), "a": "b"},
		})
	}
	stages[1]["policy"] = readOnly
	// Only tags change: no version is made.
	stages[3]["policy"] = stages[2]["policy"]
	stages[len(stages)-1]["tags"] = tags{}
	return life{
		stages: stages,
		create: createPolicy,
		read:   readPolicy,
		update: func(id string, old, wanted attributes) string {
			retag(old, wanted,
				func(keys []string) {
					done(client.UntagPolicy(ctx, &iam.UntagPolicyInput{PolicyArn: &id, TagKeys: keys}))
				},
				func(list []types.Tag) {
					done(client.TagPolicy(ctx, &iam.TagPolicyInput{PolicyArn: &id, Tags: list}))
				})
			if changed(old, wanted, "policy") {
				pruneVersions(id)
				newVersion(id, wanted["policy"].(document), same(wanted["policy"], readOnly))
			}
			return id
		},
		imports: func(string) {},
		destroy: deletePolicy,
	}
}

// A description that is not configured is sent empty.
func createPolicy(wanted attributes) string {
	made := must(client.CreatePolicy(ctx, &iam.CreatePolicyInput{
		Description:    aws.String(wanted["description"].(string)),
		Path:           wanted.text("path"),
		PolicyDocument: wanted["policy"].(document).sorted(),
		PolicyName:     wanted.text("name"),
		Tags:           wanted["tags"].(tags).list(),
	}))
	return aws.ToString(made.Policy.Arn)
}

func readPolicy(id string) attributes {
	found, err := client.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: &id})
	if gone(err) {
		return nil
	}
	policy := must(found, err).Policy
	version, err := client.GetPolicyVersion(ctx,
		&iam.GetPolicyVersionInput{PolicyArn: &id, VersionId: policy.DefaultVersionId})
	if gone(err) {
		return nil
	}
	return attributes{
		"arn":              aws.ToString(policy.Arn),
		"attachment_count": aws.ToInt32(policy.AttachmentCount),
		"description":      aws.ToString(policy.Description),
		"name":             aws.ToString(policy.PolicyName),
		"path":             aws.ToString(policy.Path),
		"policy_id":        aws.ToString(policy.PolicyId),
		"policy":           decoded(must(version, err).PolicyVersion.Document),
		"tags":             tagsOf(policy.Tags),
	}
}

// versionsOf is nil where there is no such policy.
func versionsOf(id string) []types.PolicyVersion {
	return pages(iam.NewListPolicyVersionsPaginator(client, &iam.ListPolicyVersionsInput{PolicyArn: &id}),
		func(page *iam.ListPolicyVersionsOutput) []types.PolicyVersion { return page.Versions })
}

func deleteVersion(id string, version types.PolicyVersion) {
	done(client.DeletePolicyVersion(ctx,
		&iam.DeletePolicyVersionInput{PolicyArn: &id, VersionId: version.VersionId}))
}

// pruneVersions makes room: of five, the one that was made first goes, unless it is the default.
func pruneVersions(id string) {
	all := versionsOf(id)
	if len(all) < versionsMax {
		return
	}
	var oldest *types.PolicyVersion
	for _, version := range all {
		if !version.IsDefaultVersion && (oldest == nil || version.CreateDate.Before(*oldest.CreateDate)) {
			oldest = &version
		}
	}
	deleteVersion(id, *oldest)
}

func newVersion(id string, text document, delayed bool) {
	made := must(client.CreatePolicyVersion(ctx, &iam.CreatePolicyVersionInput{
		PolicyArn: &id, PolicyDocument: text.sorted(), SetAsDefault: !delayed}))
	if delayed {
		done(client.SetDefaultPolicyVersion(ctx, &iam.SetDefaultPolicyVersionInput{
			PolicyArn: &id, VersionId: made.PolicyVersion.VersionId}))
	}
}

func deletePolicy(id string, _ attributes) {
	versions := versionsOf(id)
	if versions == nil {
		return
	}
	for _, version := range versions {
		if !version.IsDefaultVersion {
			deleteVersion(id, version)
		}
	}
	doneOrGone(client.DeletePolicy(ctx, &iam.DeletePolicyInput{PolicyArn: &id}))
}
