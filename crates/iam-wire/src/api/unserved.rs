//! The inputs and answers about things that this server does not have: MFA devices, certificates,
//! passwords.

use crate::action::{Action, State};
use crate::input::inputs;
use crate::output::render;
use crate::page::Page;
use crate::rule::{EXISTING_USER_NAME, FREE, PATH_PREFIX, ROLE_NAME, USER_NAME};
use crate::words::AssignmentStatus;
use crate::xml::{Element, Xml};

inputs! {
    ListMFADevices<'f> {
        user_name: Option<&'f str> = optional("UserName", &EXISTING_USER_NAME),
        page: Page = page(),
    }
    ListVirtualMFADevices {
        assignment_status: Option<AssignmentStatus> = optional_word("AssignmentStatus"),
        page: Page = page(),
    }
    ListSSHPublicKeys<'f> {
        user_name: Option<&'f str> = optional("UserName", &USER_NAME),
        page: Page = page(),
    }
    ListSigningCertificates<'f> {
        user_name: Option<&'f str> = optional("UserName", &EXISTING_USER_NAME),
        page: Page = page(),
    }
    ListServiceSpecificCredentials<'f> {
        user_name: Option<&'f str> = optional("UserName", &USER_NAME),
        service_name: Option<&'f str> = optional("ServiceName", &FREE),
        all_users: Option<bool> = flag("AllUsers"),
        page: Page = page(),
    }
    ListServerCertificates<'f> {
        path_prefix: Option<&'f str> = optional("PathPrefix", &PATH_PREFIX),
        page: Page = page(),
    }
    ListSAMLProviders {}
    ListInstanceProfiles<'f> {
        path_prefix: Option<&'f str> = optional("PathPrefix", &PATH_PREFIX),
        page: Page = page(),
    }
    ListInstanceProfilesForRole<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        page: Page = page(),
    }
    GetLoginProfile<'f> {
        user_name: Option<&'f str> = optional("UserName", &USER_NAME),
    }
    DeleteLoginProfile<'f> {
        user_name: Option<&'f str> = optional("UserName", &USER_NAME),
    }
    GetAccountPasswordPolicy {}
}

/// Writes the answer of an action whose list is always empty ([`State::Empty`]); `None` for other
/// actions.
pub fn render_empty(action: Action, request_id: &str) -> Option<String> {
    let State::Empty(list) = action.info().state else { return None };
    // The list of SAML providers has no pages.
    let is_paged = action != Action::ListSAMLProviders;
    let members = |xml: &mut Xml| {
        Vec::<bool>::new().write(xml, list);
        Some(false).filter(|_| is_paged).write(xml, "IsTruncated");
    };
    Some(render(action, request_id, Some(&members)))
}
