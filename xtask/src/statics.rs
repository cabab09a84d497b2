//! Checks that things of which a process has one are on a list, with their reason (decision 0036):
//! all else belongs to a tree, a server or a request, so that two of them can be in one process.
//!
//! Looked for are `static`s, those of threads too, outside of tests.

use std::collections::BTreeSet;
use std::fs;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::cycles::{attributes, is_test, modules_with_text, shown};
use crate::root;

const SELDOM: &str = "limits lines of the log, of which a process has one";
const TABLE: &str = "a table of constants that the compiler cannot make";

/// Crate, module and name of each static, and why it is the process's.
const STATICS: [(&str, &str, &str, &str); 42] = [
    ("backend-null", "the root", "ZEROS", "a constant that has an address, from which bodies are sent"),
    ("backend-posix", "base::step", "HOOK", "of a thread: what a test has happen at a step"),
    ("backend-posix", "base::unique", "COUNT", "makes names that no other thread of the process makes"),
    ("backend-posix", "base::unique", "KEYS", "makes names that no other process makes or guesses"),
    ("backend-posix", "buckets::aside", "LOGGED", SELDOM),
    ("backend-posix", "buckets::documents::states", "LOGGED", SELDOM),
    ("backend-posix", "facts::object_lock", "LOGGED", SELDOM),
    ("backend-posix", "listing::attributes", "LOGGED", SELDOM),
    ("backend-posix", "listing::unread", "LOGGED", SELDOM),
    ("backend-posix", "listing::versions", "LOGGED", SELDOM),
    ("backend-posix", "listing::walk", "LOGGED", SELDOM),
    ("backend-posix", "record::codec", "LOGGED", SELDOM),
    ("backend-posix", "tree::lock", "LOGGED", SELDOM),
    ("backend-posix", "tree::lock_time", "LOGGED", SELDOM),
    ("backend-posix", "tree::lock_wait", "BUDGET", "of a thread: how long the sweep that it runs may wait"),
    ("backend-posix", "tree::trust", "ACCOUNT", "the process's user, who does not change"),
    ("backend-posix", "tree::trust", "LOGGED", SELDOM),
    ("backend-posix", "tree::trust", "UMASK", "of the process, which does not change it"),
    ("backend-posix", "volume::flat", "NAMES", "decides by chance when a directory is looked at"),
    ("backend-posix", "volume::flat", "LOGGED", SELDOM),
    ("gateway", "access_log", "SPARE", "of a thread: memory, without what was in it"),
    ("gateway", "closed", "LOGGED", SELDOM),
    ("gateway", "explanation", "LOGGED", SELDOM),
    ("gateway", "identities::last_use", "LOGGED", SELDOM),
    ("gateway", "json_fields", "OCTETS", "a table that does not change"),
    ("gateway", "observers", "SPARE", "of a thread: memory, without what was in it"),
    ("gateway", "pipeline::authenticate", "LOGGED", SELDOM),
    ("gateway", "per_thread", "NEXT", "numbers the threads of the process"),
    ("gateway", "per_thread", "NUMBER", "of a thread: its number"),
    ("gateway", "send_file", "PLACEHOLDER", "a constant that has an address, by which it is recognized"),
    ("gateway", "spare_headers", "SPARE", "of a thread: memory, without what was in it"),
    ("gateway", "unix_identities", "LOGGED", SELDOM),
    ("iam", "policies", "SOURCES", TABLE),
    ("kernel-calls", "acting", "STANDING", "of a thread: whom its file calls are made as"),
    ("kernel-calls", "the root", "IGNORE_SIGIO", "how a process handles a signal is the process's"),
    ("kernel-calls", "the root", "TAKEN", "descriptors that were handed over are the process's"),
    ("policy", "catalogue::actions", "KNOWN", TABLE),
    ("policy", "catalogue::actions", "OF_S3", TABLE),
    ("policy", "catalogue::keys", "BY_NAME", TABLE),
    ("policy", "catalogue::keys", "SPECS", TABLE),
    ("policy", "evaluate", "REPAIR", TABLE),
    ("s3-wire", "route", "ROWS", "a constant that is computed when it is first used"),
];

#[test]
fn statics_are_on_the_list() {
    let listed: BTreeSet<_> =
        STATICS.map(|(of, module, name, _)| [of, module, name].map(str::to_owned)).into_iter().collect();
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(root().join("crates")).unwrap().map(Result::unwrap) {
        let of = entry.file_name().into_string().unwrap();
        for (module, text) in modules_with_text(&entry.path().join("src")) {
            found.extend(statics(&text).into_iter().map(|name| [of.clone(), shown(&module), name]));
        }
    }
    let new: Vec<_> = found.difference(&listed).map(|at| at.join(" ")).collect();
    assert!(new.is_empty(), "give these to whom they belong, or list them with a reason: {new:?}");
    let gone: Vec<_> = listed.difference(&found).map(|at| at.join(" ")).collect();
    assert!(gone.is_empty(), "take these off the list: {gone:?}");
}

/// The statics of a file.
fn statics(text: &str) -> Vec<String> {
    let mut reader = Reader(Vec::new());
    reader.visit_file(&syn::parse_file(text).unwrap());
    reader.0
}

struct Reader(Vec<String>);

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.0.push(item.ident.to_string());
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.look_through(call.tokens.clone());
    }
}

impl Reader {
    /// Finds statics in what is given to a macro, such as `thread_local!`.
    fn look_through(&mut self, tokens: TokenStream) {
        let mut after_static = false;
        let mut lifetime = false;
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.look_through(group.stream()),
                TokenTree::Ident(name) if after_static && name != "mut" => self.0.push(name.to_string()),
                TokenTree::Ident(name) if name == "static" && !lifetime => {
                    after_static = true;
                    continue;
                }
                TokenTree::Punct(mark) => {
                    lifetime = mark.as_char() == '\'';
                    after_static = false;
                    continue;
                }
                _ => {}
            }
            (after_static, lifetime) = (false, false);
        }
    }
}

#[test]
fn statics_are_found() {
    let text = "static A: u8 = 0; fn f() { static B: &'static str = \"\"; } \
        thread_local! { /// One.\n static C: u8 = const { 0 }; static D: &'static str = \"\"; } \
        #[cfg(test)] mod tests { static E: u8 = 0; } const F: &'static str = \"static\";";
    assert_eq!(statics(text), ["A", "B", "C", "D"]);
}
