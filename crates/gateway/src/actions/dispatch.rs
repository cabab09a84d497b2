//! The table that leads from an action's name to its implementation.

use std::pin::Pin;

use iam_wire::{Action, Form, QueryError, api, for_each_action, parse};

use super::authorize;
use super::call::ActionCall;
use super::perform::Perform;

type Work<'f> = Pin<Box<dyn Future<Output = Result<String, QueryError>> + Send + 'f>>;

fn run<'f, P: Perform<'f> + 'f>(form: &'f Form<'f>, call: &'f ActionCall<'f>) -> Work<'f> {
    let checked = parse::<P>(form).and_then(|input| {
        if !P::DECIDES_ITSELF {
            authorize::check(&input, P::ACTION.info(), call)?;
        }
        Ok(input)
    });
    match checked {
        Ok(input) => input.perform(call),
        Err(error) => Box::pin(async { Err(error) }),
    }
}

macro_rules! dispatch {
    ($($name:ident $service:ident $permission:tt $effect:ident $secrets:ident $state:tt)*) => {
        /// Performs an action.
        pub fn dispatch<'f>(action: Action, form: &'f Form<'f>, call: &'f ActionCall<'f>) -> Work<'f> {
            match action {
                $(Action::$name => dispatch!(@arm $name $state form call),)*
            }
        }
    };
    // Logins are performed before anybody is known (web_identity.rs, ldap_identity.rs).
    (@arm AssumeRoleWithWebIdentity Wave3 $form:ident $call:ident) => {
        dispatch!(@not_implemented AssumeRoleWithWebIdentity)
    };
    (@arm AssumeRoleWithLDAPIdentity Wave5 $form:ident $call:ident) => {
        dispatch!(@not_implemented AssumeRoleWithLDAPIdentity)
    };
    (@arm $name:ident Wave1 $form:ident $call:ident) => { run::<api::$name>($form, $call) };
    (@arm $name:ident Wave2 $form:ident $call:ident) => { run::<api::$name>($form, $call) };
    (@arm $name:ident Wave3 $form:ident $call:ident) => { run::<api::$name>($form, $call) };
    (@arm $name:ident Wave4 $form:ident $call:ident) => { run::<api::$name>($form, $call) };
    (@arm $name:ident (Empty $list:literal) $form:ident $call:ident) => { run::<api::$name>($form, $call) };
    (@arm $name:ident Ours $form:ident $call:ident) => { run::<api::$name>($form, $call) };
    (@arm $name:ident Missing $form:ident $call:ident) => { run::<api::$name>($form, $call) };
    (@arm $name:ident Later $form:ident $call:ident) => { dispatch!(@not_implemented $name) };
    (@arm $name:ident Refused $form:ident $call:ident) => { dispatch!(@not_implemented $name) };
    // An action in any other state does not compile until it has an arm.
    (@not_implemented $name:ident) => {
        Box::pin(async { Err(QueryError::action_not_implemented(stringify!($name))) })
    };
}

for_each_action!(dispatch);
