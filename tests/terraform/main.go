// Replays the calls that Terraform's AWS provider makes for its IAM resources: which ones, in which
// order, with which parameters, and which errors it takes for an answer.
//
//	program RESOURCE      # the name of one of `replays`; no name prints all of them
//
// Each resource is applied, planned again (nothing may have changed), changed, imported and
// destroyed. A line of JSON for each step says what was called, and what was wrong. The provider
// waits up to two minutes for what was created to be seen; nothing is called twice here.
//
// What is called was read in hashicorp/terraform-provider-aws, in stored versions of the files of
// internal/service/iam. Headers of 2026, the newest after release 6.41: user.go, role.go,
// policy.go, role_policy.go, user_policy.go, group_policy.go, role_policy_attachment.go,
// user_policy_attachment.go, group_membership.go, tags.go, user_data_source.go,
// policy_data_source.go. Older, from 2024 on: openid_connect_provider.go and account_alias.go (both
// of releases 6), user_group_membership.go, access_key.go, group.go, group_policy_attachment.go,
// role_data_source.go. When tags are changed was read in internal/provider, and the start in
// hashicorp/aws-sdk-go-base v2.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	endpoints "github.com/aws/smithy-go/endpoints"
	"github.com/aws/smithy-go/middleware"
)

// What can be replayed, by the names of Terraform's resources. The last ones are no resources.
var replays = map[string]func(){
	"aws_iam_user":                    func() { userLife().run() },
	"aws_iam_access_key":              func() { accessKeyLife().run() },
	"aws_iam_user_policy":             func() { userPolicyLife().run() },
	"aws_iam_user_policy_attachment":  func() { userAttachmentLife().run() },
	"aws_iam_group":                   func() { groupLife().run() },
	"aws_iam_group_membership":        func() { membershipLife().run() },
	"aws_iam_user_group_membership":   func() { userGroupsLife().run() },
	"aws_iam_group_policy":            func() { groupPolicyLife().run() },
	"aws_iam_group_policy_attachment": func() { groupAttachmentLife().run() },
	"aws_iam_policy":                  func() { policyLife().run() },
	"aws_iam_role":                    func() { roleLife().run() },
	"aws_iam_role_policy":             func() { rolePolicyLife().run() },
	"aws_iam_role_policy_attachment":  func() { roleAttachmentLife().run() },
	"aws_iam_openid_connect_provider": func() { providerLife().run() },
	"aws_iam_account_alias":           func() { aliasLife().run() },
	"conflicts":                       conflicts,
	"data":                            dataSources,
	"parallel":                        parallel,
	"start":                           start,
	"assumed":                         assumed,
}

var (
	ctx    = context.Background()
	own    = credentials.NewStaticCredentialsProvider(os.Getenv("TF_ACCESS_KEY"), os.Getenv("TF_SECRET_KEY"), "")
	client = iamAs(own)
)

func iamAs(who aws.CredentialsProvider) *iam.Client {
	return iam.New(iam.Options{
		EndpointResolverV2: ofIAM{},
		Region:             os.Getenv("TF_REGION"),
		RetryMaxAttempts:   1,
		Credentials:        who,
		APIOptions:         []func(*middleware.Stack) error{noteCalls},
	})
}

func stsAs(who aws.CredentialsProvider) *sts.Client {
	return sts.New(sts.Options{
		EndpointResolverV2: ofSTS{},
		Region:             os.Getenv("TF_REGION"),
		RetryMaxAttempts:   1,
		Credentials:        who,
		APIOptions:         []func(*middleware.Stack) error{noteCalls},
	})
}

// Endpoints take turns, as they do behind a load balancer.
var (
	endpointURLs = strings.Split(os.Getenv("TF_ENDPOINTS"), ",")
	turn         atomic.Uint32
)

func nextEndpoint() (endpoints.Endpoint, error) {
	uri, err := url.Parse(endpointURLs[int(turn.Add(1))%len(endpointURLs)])
	return endpoints.Endpoint{URI: *uri}, err
}

type ofIAM struct{}

func (ofIAM) ResolveEndpoint(context.Context, iam.EndpointParameters) (endpoints.Endpoint, error) {
	return nextEndpoint()
}

type ofSTS struct{}

func (ofSTS) ResolveEndpoint(context.Context, sts.EndpointParameters) (endpoints.Endpoint, error) {
	return nextEndpoint()
}

// What the present step has called.
var (
	calls     []string
	callsLock sync.Mutex
)

func noteCalls(stack *middleware.Stack) error {
	note := func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		callsLock.Lock()
		calls = append(calls, awsmiddleware.GetOperationName(ctx))
		callsLock.Unlock()
		return next.HandleInitialize(ctx, in)
	}
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("NoteCalls", note), middleware.After)
}

// A failure ends a step, and the program.
type failure struct{ what string }

func (f failure) Error() string { return f.what }

func fail(format string, arguments ...any) {
	panic(failure{fmt.Sprintf(format, arguments...)})
}

func must[T any](value T, err error) T {
	if err != nil {
		fail("%s", err)
	}
	return value
}

// done is `must` for calls whose answer says nothing.
func done[T any](_ T, err error) {
	if err != nil {
		fail("%s", err)
	}
}

// isA says whether an error is what the provider looks for: it goes by the SDK's types.
func isA[E error](err error) bool {
	var found E
	return errors.As(err, &found)
}

func gone(err error) bool { return isA[*types.NoSuchEntityException](err) }

// doneOrGone is `done` where the provider takes NoSuchEntity for success.
func doneOrGone[T any](value T, err error) {
	if !gone(err) {
		done(value, err)
	}
}

// A pager is one of the SDK's paginators.
type pager[P any, O any] interface {
	HasMorePages() bool
	NextPage(context.Context, ...func(*O)) (*P, error)
}

// pages gathers a list. It is nil where what it is of is gone; an empty one is not.
func pages[P any, T any](pages pager[P, iam.Options], of func(*P) []T) []T {
	all := []T{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if gone(err) {
			return nil
		}
		all = append(all, of(must(page, err))...)
	}
	return all
}

// step does one step of a replay, and says how it went.
func step(name string, do func()) {
	calls = nil
	line := map[string]any{"step": name}
	func() {
		defer func() {
			if thrown := recover(); thrown != nil {
				failed, ok := thrown.(failure)
				if !ok {
					panic(thrown)
				}
				line["failure"] = failed.what
			}
		}()
		do()
	}()
	line["calls"] = calls
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
	if line["failure"] != nil {
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) != 2 {
		names := []string{}
		for name := range replays {
			names = append(names, name)
		}
		slices.Sort(names)
		fmt.Println(strings.Join(names, "\n"))
		return
	}
	replay, ok := replays[os.Args[1]]
	if !ok {
		fmt.Fprintf(os.Stderr, "there is no %s\n", os.Args[1])
		os.Exit(2)
	}
	replay()
}
