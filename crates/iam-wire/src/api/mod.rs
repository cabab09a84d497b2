//! The inputs and answers of actions: a file for each kind of thing. The types have the names of
//! the API models: `CreateUser` is an input, `CreateUserResult` the answer to it.

mod account;
mod admin;
mod attached;
mod boundary;
mod bucket;
mod details;
mod group;
mod inline;
mod key;
mod policy;
mod provider;
mod role;
mod service_key;
mod session;
mod simulate;
mod unserved;
mod user;

pub use account::*;
pub use admin::*;
pub use attached::*;
pub use boundary::*;
pub use bucket::*;
pub use details::*;
pub use group::*;
pub use inline::*;
pub use key::*;
pub use policy::*;
pub use provider::*;
pub use role::*;
pub use service_key::*;
pub use session::*;
pub use simulate::*;
pub use unserved::*;
pub use user::*;

use crate::action::{Action, for_each_action};
use crate::input;
use crate::reader::Member;

macro_rules! members {
    ($($name:ident $service:ident $permission:tt $effect:ident $secrets:ident $state:tt)*) => {
        /// Returns the members of an action's input, with their constraints; `None` for an action
        /// whose input is not read.
        pub fn members(action: Action) -> Option<Vec<Member>> {
            match action { $(Action::$name => members!(@row $name $state),)* }
        }
    };
    (@row $name:ident Later) => { None };
    (@row $name:ident Refused) => { None };
    (@row $name:ident $state:tt) => { Some(input::members::<$name>()) };
}

for_each_action!(members);
