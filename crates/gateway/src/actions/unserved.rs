//! The actions whose lists are always empty, or that find nothing: there are no such things here.

use async_trait::async_trait;
use iam::model::{PolicyArn, Tags};
use iam_wire::api::{self, render_empty};
use iam_wire::{QueryCode, QueryError};
use policy::Value;

use super::call::ActionCall;
use super::entities::value_of_entity;
use super::perform::Perform;

macro_rules! empty {
    ($($name:ident $life:tt $about:expr, $facts:expr;)*) => {$(
        #[async_trait]
        impl<'f> Perform<'f> for empty!(@type $name $life) {
            fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
                let about: fn(&Self, &ActionCall<'_>) -> String = $about;
                Ok(about(self, call))
            }

            fn own_value<'v>(&'v self, call: &'v ActionCall<'_>, name: &str, tag: &str) -> Value<'v> {
                let facts: for<'x> fn(&'x Self, &'x ActionCall<'_>) -> OfEntity<'x> = $facts;
                value_of_entity(facts(self, call), name, tag)
            }

            async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
                let empty = render_empty(<Self as iam_wire::Input<'f>>::ACTION, call.request_id);
                empty.ok_or_else(|| QueryError::new(QueryCode::ServiceFailure, "There is no answer."))
            }
        }
    )*};
    (@type $name:ident with) => { api::$name<'f> };
    (@type $name:ident none) => { api::$name };
}

/// The facts that conditions may ask of a user or a role.
type OfEntity<'x> = Option<(&'x Tags, Option<&'x PolicyArn>)>;

/// Returns what conditions may ask of the user that is named, or that asks.
fn facts_of_user<'x>(call: &'x ActionCall<'_>, user_name: Option<&str>) -> OfEntity<'x> {
    match user_name {
        Some(name) => call.facts_of_user(name),
        None => call.asking_user().map(|(_, user)| (&user.tags, user.boundary.as_ref())),
    }
}

fn of_user(call: &ActionCall<'_>, user_name: Option<&str>) -> String {
    match user_name {
        Some(name) => call.user_arn(name),
        None => call.session.principal.arn.to_string(),
    }
}

empty! {
    ListMFADevices with |input, call| of_user(call, input.user_name), |input, call| facts_of_user(call, input.user_name);
    ListVirtualMFADevices none |_, call| call.arn("mfa", "/*"), |_, _| None;
    ListSSHPublicKeys with |input, call| of_user(call, input.user_name), |input, call| facts_of_user(call, input.user_name);
    ListSigningCertificates with |input, call| of_user(call, input.user_name), |input, call| facts_of_user(call, input.user_name);
    ListServiceSpecificCredentials with |input, call| of_user(call, input.user_name), |input, call| facts_of_user(call, input.user_name);
    ListServerCertificates with |_, call| call.arn("server-certificate", "/"), |_, _| None;
    ListSAMLProviders none |_, _| "*".to_owned(), |_, _| None;
    ListInstanceProfiles with |_, call| call.arn("instance-profile", "/"), |_, _| None;
    ListInstanceProfilesForRole with |input, call| call.role_arn(input.role_name), |input, call| call.facts_of_role(input.role_name);
}

#[async_trait]
impl<'f> Perform<'f> for api::GetLoginProfile<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(of_user(call, self.user_name))
    }

    fn own_value<'v>(&'v self, call: &'v ActionCall<'_>, name: &str, tag: &str) -> Value<'v> {
        value_of_entity(facts_of_user(call, self.user_name), name, tag)
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        no_login_profile(call, self.user_name)
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::DeleteLoginProfile<'f> {
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok(of_user(call, self.user_name))
    }

    fn own_value<'v>(&'v self, call: &'v ActionCall<'_>, name: &str, tag: &str) -> Value<'v> {
        value_of_entity(facts_of_user(call, self.user_name), name, tag)
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        no_login_profile(call, self.user_name)
    }
}

fn no_login_profile(call: &ActionCall<'_>, user_name: Option<&str>) -> Result<String, QueryError> {
    let name = match user_name {
        Some(name) => name,
        None => call.asking_user().ok_or_else(QueryError::user_name_missing)?.0.as_str(),
    };
    call.user(name)?;
    Err(QueryError::no_login_profile(name))
}

#[async_trait]
impl Perform<'_> for api::GetAccountPasswordPolicy {
    fn about(&self, _: &ActionCall<'_>) -> Result<String, QueryError> {
        Ok("*".to_owned())
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Err(QueryError::no_password_policy(call.account_id().as_str()))
    }
}
