//! The inputs and answers about OpenID providers.

use s3_types::Timestamp;

use crate::input::inputs;
use crate::output::{elements, outputs};
use crate::page::Page;
use crate::rule::{ARN, CLAIM, CLIENT_ID, CLIENT_IDS, PROVIDER_URL, TAG_KEYS, THUMBPRINTS};
use crate::tag::Tag;
use crate::xml::Text;

inputs! {
    CreateOpenIDConnectProvider<'f> {
        url: &'f str = text("Url", &PROVIDER_URL),
        client_id_list: Vec<&'f str> = optional_texts("ClientIDList", &CLIENT_IDS),
        thumbprint_list: Vec<&'f str> = optional_texts("ThumbprintList", &THUMBPRINTS),
        tags: Vec<Tag<'f>> = optional_tags("Tags"),
        ; refused &["ContextProvider", "IdentityCenterInstanceArn"]
    }
    GetOpenIDConnectProvider<'f> {
        arn: &'f str = text("OpenIDConnectProviderArn", &ARN),
    }
    DeleteOpenIDConnectProvider<'f> {
        arn: &'f str = text("OpenIDConnectProviderArn", &ARN),
    }
    ListOpenIDConnectProviders {}
    AddClientIDToOpenIDConnectProvider<'f> {
        arn: &'f str = text("OpenIDConnectProviderArn", &ARN),
        client_id: &'f str = text("ClientID", &CLIENT_ID),
    }
    RemoveClientIDFromOpenIDConnectProvider<'f> {
        arn: &'f str = text("OpenIDConnectProviderArn", &ARN),
        client_id: &'f str = text("ClientID", &CLIENT_ID),
    }
    UpdateOpenIDConnectProviderThumbprint<'f> {
        arn: &'f str = text("OpenIDConnectProviderArn", &ARN),
        thumbprint_list: Vec<&'f str> = texts("ThumbprintList", &THUMBPRINTS),
    }
    TagOpenIDConnectProvider<'f> {
        arn: &'f str = text("OpenIDConnectProviderArn", &ARN),
        tags: Vec<Tag<'f>> = tags("Tags"),
    }
    UntagOpenIDConnectProvider<'f> {
        arn: &'f str = text("OpenIDConnectProviderArn", &ARN),
        tag_keys: Vec<&'f str> = texts("TagKeys", &TAG_KEYS),
    }
    ListOpenIDConnectProviderTags<'f> {
        arn: &'f str = text("OpenIDConnectProviderArn", &ARN),
        page: Page = page(),
    }
}

inputs! {
    /// The input of one of this server's own actions. A claim that the input does not name is
    /// removed.
    SetOpenIDConnectProviderClaims<'f> {
        arn: &'f str = text("OpenIDConnectProviderArn", &ARN),
        role_claim: Option<&'f str> = optional("RoleClaim", &CLAIM),
        posix_claim: Option<&'f str> = optional("PosixClaim", &CLAIM),
    }
    GetOpenIDConnectProviderClaims<'f> {
        arn: &'f str = text("OpenIDConnectProviderArn", &ARN),
    }
}

elements! {
    /// A provider in a list.
    OpenIDConnectProviderListEntry<'a> {
        "Arn" arn: Text<'a>,
    }
}

outputs! {
    GetOpenIDConnectProviderClaims => GetOpenIDConnectProviderClaimsResult<'a> {
        "RoleClaim" role_claim: Option<Text<'a>>,
        "PosixClaim" posix_claim: Option<Text<'a>>,
    }
    /// The answer has tags if the request had some (recorded).
    CreateOpenIDConnectProvider => CreateOpenIDConnectProviderResult<'a> {
        "OpenIDConnectProviderArn" arn: Text<'a>,
        "Tags" tags: Option<Vec<Tag<'a>>>,
    }
    GetOpenIDConnectProvider => GetOpenIDConnectProviderResult<'a> {
        "Url" url: Text<'a>,
        "ClientIDList" client_id_list: Vec<Text<'a>>,
        "ThumbprintList" thumbprint_list: Vec<Text<'a>>,
        "CreateDate" create_date: Timestamp,
        "Tags" tags: Vec<Tag<'a>>,
    }
    ListOpenIDConnectProviders => ListOpenIDConnectProvidersResult<'a> {
        "OpenIDConnectProviderList" providers: Vec<OpenIDConnectProviderListEntry<'a>>,
    }
    ListOpenIDConnectProviderTags => ListOpenIDConnectProviderTagsResult<'a> {
        "Tags" tags: Vec<Tag<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
}
