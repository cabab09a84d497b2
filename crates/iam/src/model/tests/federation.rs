//! Roles and OpenID providers: codes and sentences. Those of AWS are from recordings of February
//! 2026 (localstack's snapshots).

use super::*;

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, IamError>, code: IamCode, message: &str) {
    let error = result.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (code, message));
}

#[test]
fn roles() {
    with(|document, cx| {
        let (reader, missing) = (name("reader"), "The role with name reader cannot be found.");
        let gone = IamCode::NoSuchEntity;
        let description = Description::new("d").unwrap();
        refused(document.role(&reader), gone, missing);
        refused(document.update_role(&reader, None, Some(7_200)), gone, missing);
        refused(document.update_trust(&reader, &policy("{}"), cx), gone, missing);
        refused(document.delete_role(&reader), gone, missing);
        refused(document.set_role_disabled(&reader, true), gone, missing);
        refused(document.set_role_posix(&reader, None), gone, missing);
        refused(document.tag(&Tagged::Role(reader.clone()), &Tags::new()), gone, missing);
        refused(document.untag(&Tagged::Role(reader.clone()), &[]), gone, missing);
        let id = document.create_role(&new_role("Reader"), cx).unwrap();
        let exists = "Role with name reader already exists.";
        refused(document.create_role(&new_role("reader"), cx), IamCode::EntityAlreadyExists, exists);
        let role = document.role(&reader).unwrap();
        assert_eq!((role.max_session, &role.description, &role.id), (3_600, &None, &id));
        document.update_role(&reader, Some(&description), Some(7_200)).unwrap();
        // What is not given stays.
        document.update_role(&reader, None, None).unwrap();
        let role = document.role(&reader).unwrap();
        assert_eq!((role.max_session, role.description.as_ref()), (7_200, Some(&description)));
        // A role and a user may have one name.
        document.create_user(&new_user("reader"), cx).unwrap();
        let long = new_role(&"a".repeat(65));
        assert_eq!(document.create_role(&long, cx).unwrap_err().code, IamCode::ValidationError);
    });
}

#[test]
fn sessions_of_a_role_last_an_hour_to_twelve() {
    with(|document, cx| {
        document.create_role(&new_role("reader"), cx).unwrap();
        let start = "1 validation error detected: Value at 'maxSessionDuration' failed to satisfy constraint: Member \
                     must have value ";
        for (seconds, rule) in
            [(3_599, "greater than or equal to 3600"), (43_201, "less than or equal to 43200")]
        {
            let message = format!("{start}{rule}");
            let new = NewRole { max_session: Some(seconds), ..new_role("other") };
            refused(document.create_role(&new, cx), IamCode::ValidationError, &message);
            let updated = document.update_role(&name("reader"), None, Some(seconds));
            refused(updated, IamCode::ValidationError, &message);
        }
        for seconds in [3_600, 43_200] {
            document.update_role(&name("reader"), None, Some(seconds)).unwrap();
        }
    });
}

#[test]
fn a_role_that_has_policies_is_not_deleted() {
    with(|document, cx| {
        let (reader, own) = (name("reader"), name("own"));
        let holder = Holder::Role(reader.clone());
        document.create_role(&new_role("reader"), cx).unwrap();
        let attached = document.create_policy(&new_policy("p"), cx).unwrap();
        let not_attached = format!("Policy {attached} was not found.");
        refused(document.detach_policy(&holder, &attached), IamCode::NoSuchEntity, &not_attached);
        document.attach_policy(&holder, &attached).unwrap();
        document.put_inline_policy(&holder, &own, &policy("{}"), cx).unwrap();
        let first = "Cannot delete entity, must detach all policies first.";
        refused(document.delete_role(&reader), IamCode::DeleteConflict, first);
        document.detach_policy(&holder, &attached).unwrap();
        let then = "Cannot delete entity, must delete policies first.";
        refused(document.delete_role(&reader), IamCode::DeleteConflict, then);
        document.delete_inline_policy(&holder, &own).unwrap();
        let no_policy = "The role policy with name own cannot be found.";
        refused(document.delete_inline_policy(&holder, &own), IamCode::NoSuchEntity, no_policy);
        // A boundary is no reason to stay.
        document.set_boundary(&holder, Some(&attached)).unwrap();
        document.delete_role(&reader).unwrap();
        document.delete_policy(&attached).unwrap();
    });
}

#[test]
fn trust_policies_and_boundaries() {
    with(|document, cx| {
        document.create_role(&new_role("reader"), cx).unwrap();
        let malformed = IamCode::MalformedPolicyDocument;
        let not_json = "This policy contains invalid Json";
        let new = NewRole { trust: policy("x"), ..new_role("other") };
        refused(document.create_role(&new, cx), malformed, not_json);
        refused(document.update_trust(&name("reader"), &policy("x"), cx), malformed, not_json);
        let long = policy(&format!("{{{}}}", "x".repeat(2_047)));
        let quota = "Cannot exceed quota for ACLSizePerRole: 2048";
        refused(document.update_trust(&name("reader"), &long, cx), IamCode::LimitExceeded, quota);
        let no_boundary = format!("Scope ARN: {} does not exist or is not attachable.", arn("q"));
        let new = NewRole { boundary: Some(arn("q")), ..new_role("other") };
        refused(document.create_role(&new, cx), IamCode::NoSuchEntity, &no_boundary);
        let holder = Holder::Role(name("reader"));
        refused(document.set_boundary(&holder, Some(&arn("q"))), IamCode::NoSuchEntity, &no_boundary);
        let nobody = Holder::Role(name("nobody"));
        let missing = "The role with name nobody cannot be found.";
        refused(document.set_boundary(&nobody, Some(&arn("q"))), IamCode::NoSuchEntity, missing);
        let twice = "Duplicate tag keys found. Please note that Tag keys are case insensitive.";
        let new = NewRole { tags: tags(&[("a", ""), ("A", "")]), ..new_role("other") };
        refused(document.create_role(&new, cx), IamCode::InvalidInput, twice);
    });
}

fn new_provider(url: &str) -> NewProvider {
    let url = ProviderUrl::new(url).unwrap();
    NewProvider { url, is_http: false, client_ids: Vec::new(), thumbprints: Vec::new(), tags: Tags::new() }
}

fn thumbprint(letter: &str) -> Box<str> {
    letter.repeat(40).into()
}

#[test]
fn providers() {
    with(|document, cx| {
        let arn = provider("idp.lab/oidc");
        let not_found = format!("OpenIDConnect Provider not found for arn {arn}");
        let gone = IamCode::NoSuchEntity;
        refused(document.provider(&arn), gone, &not_found);
        let cannot = format!("OpenId connect Provider {arn} cannot be found.");
        refused(document.delete_provider(&arn), gone, &cannot);
        refused(document.add_client_id(&arn, "a"), gone, &not_found);
        refused(document.remove_client_id(&arn, "a"), gone, &not_found);
        refused(document.update_thumbprints(&arn, &[]), gone, &not_found);
        refused(document.set_provider_disabled(&arn, true), gone, &not_found);
        refused(document.tag(&Tagged::Provider(arn.clone()), &Tags::new()), gone, &not_found);
        let twice = "Duplicate tag keys found. Please note that Tag keys are case insensitive.";
        let new = NewProvider { tags: tags(&[("a", ""), ("A", "")]), ..new_provider("https://idp.lab/oidc") };
        refused(document.create_provider(&new, cx), IamCode::InvalidInput, twice);
        let made = document.create_provider(&new_provider("https://idp.lab/oidc"), cx).unwrap();
        assert_eq!(made, arn);
        refused(document.tag(&Tagged::Provider(arn.clone()), &new.tags), IamCode::InvalidInput, twice);
        let exists = "Provider with url https://idp.lab/oidc already exists.";
        let again = document.create_provider(&new_provider("https://idp.lab/oidc"), cx);
        refused(again, IamCode::EntityAlreadyExists, exists);
        // One of another account is another one.
        let other = ProviderArn::new("arn:aws:iam::123456789013:oidc-provider/idp.lab/oidc").unwrap();
        assert!(document.provider(&other).is_err() && document.delete_provider(&other).is_err());
        document.update_thumbprints(&arn, &[thumbprint("c"), thumbprint("d"), thumbprint("c")]).unwrap();
        assert_eq!(*document.provider(&arn).unwrap().thumbprints, [thumbprint("c"), thumbprint("d")]);
        document.set_provider_claims(&arn, Some("groups"), Some("preferred_username")).unwrap();
        for wrong in [(Some("a\nb"), None), (None, Some("")), (None, Some("a\nb"))] {
            assert!(document.set_provider_claims(&arn, wrong.0, wrong.1).is_err());
        }
        // One after the other, it can have both.
        for tag in [("a", "1"), ("A", "2")] {
            document.tag(&Tagged::Provider(arn.clone()), &tags(&[tag])).unwrap();
        }
        document.untag(&Tagged::Provider(arn.clone()), &[TagKey::new("a").unwrap()]).unwrap();
        assert_eq!(document.provider(&arn).unwrap().tags, tags(&[("A", "2")]));
        document.delete_provider(&arn).unwrap();
        refused(document.delete_provider(&arn), gone, &cannot);
    });
}

#[test]
fn limits_of_providers() {
    with(|document, cx| {
        let all: Vec<Box<str>> = (0..101).map(|number| number.to_string().into()).collect();
        let new = NewProvider { client_ids: all.clone(), ..new_provider("https://idp.lab") };
        let quota = "Cannot exceed quota for ClientIdsPerOpenIdConnectProvider: 100";
        refused(document.create_provider(&new, cx), IamCode::LimitExceeded, quota);
        let letters = ["a", "b", "c", "d", "e", "f"].map(thumbprint);
        let new = NewProvider { thumbprints: letters.to_vec(), ..new_provider("https://idp.lab") };
        let fewer = "Thumbprint list must contain fewer than 5 entries.";
        refused(document.create_provider(&new, cx), IamCode::InvalidInput, fewer);
        let new = NewProvider { thumbprints: vec!["b".repeat(41).into()], ..new_provider("https://idp.lab") };
        assert_eq!(document.create_provider(&new, cx).unwrap_err().code, IamCode::ValidationError);

        let new = NewProvider {
            client_ids: all[..100].to_vec(),
            thumbprints: letters[..5].to_vec(),
            ..new_provider("https://idp.lab")
        };
        let arn = document.create_provider(&new, cx).unwrap();
        // One that is there is taken again, one more is not.
        document.add_client_id(&arn, "99").unwrap();
        refused(document.add_client_id(&arn, "100"), IamCode::LimitExceeded, quota);
        refused(document.update_thumbprints(&arn, &letters), IamCode::InvalidInput, fewer);
        document.remove_client_id(&arn, "nothing").unwrap();
        document.remove_client_id(&arn, "0").unwrap();
        document.add_client_id(&arn, "100").unwrap();
        for bad in ["", &"b".repeat(256), "a\n"] {
            assert_eq!(document.add_client_id(&arn, bad).unwrap_err().code, IamCode::ValidationError);
        }
        for number in 1..limits::PROVIDERS_MAX {
            document.create_provider(&new_provider(&format!("https://idp{number}.lab")), cx).unwrap();
        }
        let one_more = document.create_provider(&new_provider("https://more.lab"), cx);
        assert_eq!(one_more.unwrap_err().code, IamCode::LimitExceeded);
    });
}
