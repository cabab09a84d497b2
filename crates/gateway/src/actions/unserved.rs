//! The actions that answer an empty list, or that nothing was found, since this server has no such
//! things.

use async_trait::async_trait;
use iam_wire::api::{self, render_empty};
use iam_wire::{QueryCode, QueryError};

use super::call::ActionCall;
use super::perform::Perform;
use super::target::Target;

macro_rules! empty {
    ($($name:ident $life:tt $target:expr;)*) => {$(
        #[async_trait]
        impl<'f> Perform<'f> for empty!(@type $name $life) {
            fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
                let target: for<'x> fn(&'x Self, &'x ActionCall<'_>) -> Target<'x> = $target;
                Ok(target(self, call))
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

empty! {
    ListMFADevices with |input, call| call.of_user_or_asker(input.user_name);
    ListVirtualMFADevices none |_, call| Target::new(call.arn("mfa", "/*"));
    ListSSHPublicKeys with |input, call| call.of_user_or_asker(input.user_name);
    ListSigningCertificates with |input, call| call.of_user_or_asker(input.user_name);
    ListServiceSpecificCredentials with |input, call| call.of_user_or_asker(input.user_name);
    ListServerCertificates with |_, call| call.all_of("server-certificate");
    ListSAMLProviders none |_, _| Target::nothing();
    ListInstanceProfiles with |_, call| call.all_of("instance-profile");
    ListInstanceProfilesForRole with |input, call| call.of_role(input.role_name);
}

#[async_trait]
impl<'f> Perform<'f> for api::GetLoginProfile<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_user_or_asker(self.user_name))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        no_login_profile(call, self.user_name)
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::DeleteLoginProfile<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_user_or_asker(self.user_name))
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
    fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(Target::nothing())
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        Err(QueryError::no_password_policy(call.account_id().as_str()))
    }
}
