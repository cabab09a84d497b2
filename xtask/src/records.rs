//! No field of a record is forgotten (decision 0034): where one is made, or taken apart, all of its
//! fields are named, and none has a default. So whoever adds one is led to each place that has to
//! decide about it.
//!
//! The types are those that implement `Kind`, and the types of the same folder of which their
//! fields are made: the two halves, the version, what an upload is to replace. Tests are held to it
//! too.
//!
//! What a record is made from comes with a request. So the storage takes requests apart in full
//! too, outside of tests: otherwise a new field of a request would be dropped, and nothing would
//! say so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::comments::each_file;
use crate::cycles::is_test;
use crate::root;

const BACKEND: &str = "crates/backend-posix/src";
/// The folder in which the requests to a storage are defined.
const TRAIT: &str = "crates/backend/src";
/// Other structs whose fields come with requests.
const OF_REQUESTS: [&str; 3] = ["WriteOptions", "NewUpload", "CopySource"];
/// The file in which the facts of objects are defined that permissions depend on.
const FACTS: &str = "crates/s3-types/src/object_facts.rs";
/// The folder in which empty records are made, to be filled.
const CODEC: &str = "crates/backend-posix/src/record";

#[test]
fn no_field_of_a_record_is_left_out() {
    let (mut kinds, mut all) = (BTreeSet::new(), BTreeMap::new());
    each_file(&root().join(CODEC), &mut |path| {
        let file = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
        kinds.extend(file.items.iter().filter_map(kind));
        all.extend(file.items.iter().filter_map(parts));
    });
    assert!(kinds.len() >= 7, "{kinds:?}");
    let halves = halves(&kinds, &all);
    for half in ["ObjectContent", "Attached", "Version", "ObjectIdentity"] {
        assert!(halves.contains(half), "{halves:?}");
    }
    kinds.extend(halves);
    let mut wrong = Vec::new();
    each_file(&root().join(BACKEND), &mut |path| {
        let may_be_blank = path.starts_with(root().join(CODEC));
        let file = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
        let found = left_out(&file, &kinds, may_be_blank);
        wrong.extend(found.into_iter().map(|(of, what)| format!("{}: {of}: {what}", path.display())));
    });
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn no_field_of_a_request_is_dropped() {
    let mut requests = structs_of(TRAIT);
    let ends = |name: &str| ["Request", "Query"].iter().any(|end| name.ends_with(end));
    requests.retain(|name| ends(name) || OF_REQUESTS.contains(&name.as_str()));
    assert!(requests.len() >= 16, "{requests:?}");
    let own = structs_of(BACKEND);
    let same: Vec<_> = requests.intersection(&own).collect();
    assert!(same.is_empty(), "the storage has types of its own with these names: {same:?}");
    let mut attributes = requests.clone();
    attributes.insert("ObjectAttributes".to_owned());
    let mut wrong = Vec::new();
    each_file(&root().join(BACKEND), &mut |path| {
        if path.ends_with("testing.rs") || path.components().any(|part| part.as_os_str() == "tests.rs") {
            return;
        }
        let file = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
        let file = without_tests(file);
        let found = left_out(&file, &attributes, true).into_iter().chain(picked(&file, &requests));
        wrong.extend(found.map(|(of, what)| format!("{}: {of}: {what}", path.display())));
    });
    wrong.dedup();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A check must not be told that an object has no facts by code that has not read its record.
#[test]
fn only_what_is_attached_makes_facts_of_objects() {
    let facts = BTreeSet::from(["ObjectFacts".to_owned()]);
    let read = |path: &Path| syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(left_out(&read(&root().join(FACTS)), &facts, true), []);
    let mut makers = Vec::new();
    each_file(&root().join(BACKEND), &mut |path| {
        let mut maker = Maker { of: &facts, found: false };
        maker.visit_file(&read(path));
        makers.extend(maker.found.then(|| path.strip_prefix(root().join(BACKEND)).unwrap().to_owned()));
    });
    assert_eq!(makers, [Path::new("record/attached.rs")]);
}

/// Looks for values of structs.
struct Maker<'a> {
    of: &'a BTreeSet<String>,
    found: bool,
}

impl<'ast> Visit<'ast> for Maker<'_> {
    fn visit_expr_struct(&mut self, value: &'ast syn::ExprStruct) {
        self.found |= value.path.segments.last().is_some_and(|of| self.of.contains(&of.ident.to_string()));
        visit::visit_expr_struct(self, value);
    }
}

/// The names of the structs with named fields in a folder.
fn structs_of(folder: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    each_file(&root().join(folder), &mut |path| {
        let file = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
        found.extend(file.items.iter().filter_map(fields).map(|(name, _)| name));
    });
    found
}

/// A file without its modules of tests.
fn without_tests(mut file: syn::File) -> syn::File {
    file.items.retain(|item| !matches!(item, syn::Item::Mod(item) if is_test(&item.attrs)));
    file
}

/// The requests of which a function reads single fields.
fn picked(file: &syn::File, requests: &BTreeSet<String>) -> Vec<(String, &'static str)> {
    let mut picker = Picker { requests, parameters: BTreeMap::new(), found: Vec::new() };
    picker.visit_file(file);
    picker.found
}

struct Picker<'a> {
    requests: &'a BTreeSet<String>,
    /// The names of the open function's parameters that are requests, with their types.
    parameters: BTreeMap<String, String>,
    found: Vec<(String, &'static str)>,
}

const PICKED: &str = "a field that is read alone leaves the others behind: take the request apart";

impl<'ast> Visit<'ast> for Picker<'_> {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        let typed = signature.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Typed(typed) => Some((&*typed.pat, name(&typed.ty)?)),
            syn::FnArg::Receiver(_) => None,
        });
        let named = typed.filter_map(|(pattern, of)| match pattern {
            syn::Pat::Ident(pattern) => Some((pattern.ident.to_string(), of)),
            _ => None,
        });
        self.parameters = named.filter(|(_, of)| self.requests.contains(of)).collect();
    }

    fn visit_expr_field(&mut self, field: &'ast syn::ExprField) {
        if let syn::Expr::Path(base) = &*field.base
            && let Some(of) = base.path.get_ident().and_then(|base| self.parameters.get(&base.to_string()))
        {
            self.found.push((of.clone(), PICKED));
        }
        visit::visit_expr_field(self, field);
    }
}

/// The type for which an item implements `Kind`.
fn kind(item: &syn::Item) -> Option<String> {
    let syn::Item::Impl(item) = item else { return None };
    let (of, _) = item.trait_.as_ref()?;
    of.segments.last().is_some_and(|part| part.ident == "Kind").then(|| name(&item.self_ty))?
}

/// A struct with named fields, and the types that these name.
fn fields(item: &syn::Item) -> Option<(String, Vec<String>)> {
    let syn::Item::Struct(item) = item else { return None };
    let syn::Fields::Named(fields) = &item.fields else { return None };
    Some((item.ident.to_string(), named_in(|names| names.visit_fields_named(fields))))
}

/// A struct with named fields or an enum, and the types that it names.
fn parts(item: &syn::Item) -> Option<(String, Vec<String>)> {
    match item {
        syn::Item::Enum(item) => {
            Some((item.ident.to_string(), named_in(|names| names.visit_item_enum(item))))
        }
        item => fields(item),
    }
}

/// The types that something names, those within `Option<T>`, `Box<T>` or `[T]` included.
fn named_in(visit: impl FnOnce(&mut Names)) -> Vec<String> {
    let mut names = Names(Vec::new());
    visit(&mut names);
    names.0
}

struct Names(Vec<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_type_path(&mut self, path: &'ast syn::TypePath) {
        self.0.extend(path.path.segments.last().map(|part| part.ident.to_string()));
        visit::visit_type_path(self, path);
    }
}

/// The types of `all` of which records are made.
fn halves(kinds: &BTreeSet<String>, all: &BTreeMap<String, Vec<String>>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left: Vec<_> = kinds.iter().filter_map(|kind| all.get(kind)).flatten().collect();
    while let Some(half) = left.pop() {
        if let Some(its) = all.get(half)
            && found.insert(half.clone())
        {
            left.extend(its);
        }
    }
    found
}

fn name(of: &syn::Type) -> Option<String> {
    let of = if let syn::Type::Reference(of) = of { &of.elem } else { of };
    let syn::Type::Path(path) = of else { return None };
    path.path.segments.last().map(|part| part.ident.to_string())
}

/// The records of which a file may leave fields out, and why.
fn left_out(file: &syn::File, kinds: &BTreeSet<String>, may_be_blank: bool) -> Vec<(String, &'static str)> {
    let mut reader = Reader { kinds, may_be_blank, inside: None, found: Vec::new() };
    reader.visit_file(file);
    reader.found
}

struct Reader<'a> {
    kinds: &'a BTreeSet<String>,
    may_be_blank: bool,
    /// The type whose `impl` is open.
    inside: Option<String>,
    found: Vec<(String, &'static str)>,
}

const REST: &str = "`..` leaves fields of a record out: name them all";
const DEFAULT: &str = "a record has no default: name all of its fields";
const BLANK: &str = "an empty record is for the codec to fill: name all of its fields";

impl Reader<'_> {
    /// The record that a name stands for.
    fn named(&self, name: &str) -> Option<String> {
        let name = if name == "Self" { self.inside.as_deref()? } else { name };
        self.kinds.get(name).cloned()
    }

    fn last_of(&self, path: &syn::Path) -> Option<String> {
        let mut from_last = path.segments.iter().rev().map(|part| part.ident.to_string());
        let last = from_last.next()?;
        // After the name of a type, it is a variant's.
        let is_variant = from_last.next().is_some_and(|above| above.starts_with(char::is_uppercase));
        if is_variant { None } else { self.named(&last) }
    }

    /// Looks through the arguments of a macro: a name with braces, in which `..` is first or after
    /// a comma.
    fn look_through(&mut self, tokens: TokenStream) {
        let mut before = None;
        for token in tokens {
            if let TokenTree::Group(group) = &token {
                let named = before.as_ref().and_then(|name: &String| self.named(name));
                if let Some(of) = named
                    && group.delimiter() == Delimiter::Brace
                    && has_rest(group.stream())
                {
                    self.found.push((of, REST));
                }
                self.look_through(group.stream());
            }
            before = if let TokenTree::Ident(ident) = &token { Some(ident.to_string()) } else { None };
        }
    }
}

fn has_rest(tokens: TokenStream) -> bool {
    let mut begins = true;
    let mut dots = 0;
    for token in tokens {
        let mark = if let TokenTree::Punct(mark) = &token { mark.as_char() } else { ' ' };
        dots = if mark == '.' && (begins || dots == 1) { dots + 1 } else { 0 };
        if dots == 2 {
            return true;
        }
        begins = mark == ',';
    }
    false
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(of, _)| of.segments.last());
        let outside = std::mem::replace(&mut self.inside, name(&item.self_ty));
        if of.is_some_and(|of| of.ident == "Default") {
            self.found.extend(self.named("Self").map(|of| (of, DEFAULT)));
        }
        visit::visit_item_impl(self, item);
        self.inside = outside;
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let derives = |attribute: &syn::Attribute| {
            let text = match &attribute.meta {
                syn::Meta::List(list) if list.path.is_ident("derive") => list.tokens.to_string(),
                _ => String::new(),
            };
            text.split(|c: char| !c.is_alphanumeric()).any(|word| word == "Default")
        };
        if item.attrs.iter().any(derives) {
            self.found.extend(self.named(&item.ident.to_string()).map(|of| (of, DEFAULT)));
        }
        visit::visit_item_struct(self, item);
    }

    fn visit_expr_struct(&mut self, value: &'ast syn::ExprStruct) {
        if value.dot2_token.is_some() {
            self.found.extend(self.last_of(&value.path).map(|of| (of, REST)));
        }
        visit::visit_expr_struct(self, value);
    }

    fn visit_pat_struct(&mut self, pattern: &'ast syn::PatStruct) {
        if pattern.rest.is_some() {
            self.found.extend(self.last_of(&pattern.path).map(|of| (of, REST)));
        }
        visit::visit_pat_struct(self, pattern);
    }

    fn visit_expr_path(&mut self, value: &'ast syn::ExprPath) {
        let mut parts = value.path.segments.iter().rev().map(|part| part.ident.to_string());
        if parts.next().is_some_and(|last| last == "blank") && !self.may_be_blank {
            self.found.extend(parts.next().map(|of| (of, BLANK)));
        }
        visit::visit_expr_path(self, value);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.look_through(call.tokens.clone());
    }
}

#[test]
fn what_leaves_fields_out_is_found() {
    let kinds = BTreeSet::from(["A".to_owned()]);
    let file = |text: &str| syn::parse_file(text).unwrap();
    let of = |text: &str| {
        left_out(&file(text), &kinds, false).into_iter().map(|(_, what)| what).collect::<Vec<_>>()
    };
    for text in [
        "fn f(a: A) { let x::A { b, .. } = a; }",
        "fn f(a: A) -> A { A { b: 1, ..a } }",
        "impl A { fn f(self) { let Self { b, .. } = self; } }",
        "fn f(a: A) { if matches!(a, A { b: 1, .. }) {} }",
        "fn f(a: A) { assert_eq!(a, A { ..c }); }",
    ] {
        assert_eq!(of(text), [REST], "{text}");
    }
    assert_eq!(of("#[derive(Debug, Default)] struct A { b: u8 }"), [DEFAULT]);
    assert_eq!(of("impl Default for A { fn default() -> Self { A { b: 1 } } }"), [DEFAULT]);
    assert_eq!(of("fn f() { A::blank() }"), [BLANK]);
    assert!(left_out(&file("fn f() { A::blank() }"), &kinds, true).is_empty());
    for text in [
        "fn f(a: A) -> A { let A { b, c: _ } = a; A { b, c: 1..2 } }",
        "fn f(a: B) -> B { let B { b, .. } = a; B { ..d } }",
        "fn f(b: B) { if let x::B::A { b, .. } = b {} }",
        "impl B { fn f(self) { let Self { b, .. } = self; } }",
        "#[derive(Clone)] struct A { b: u8 } #[derive(Default)] struct B;",
        "fn f() { assert_eq!(A { b: 1..2 }, x[..]); }",
    ] {
        assert_eq!(of(text), [""; 0], "{text}");
    }
    assert_eq!(left_out(&file("fn f(a: A) { let A { .. } = a; }"), &kinds, false), [("A".to_owned(), REST)]);
    assert_eq!(kind(&syn::parse_str("impl Kind for A {}").unwrap()), Some("A".to_owned()));
    let texts = [
        "struct A { b: B, c: Option<Box<x::C>>, d: u8, f: Arc<[F]> }",
        "struct B { e: u8 }",
        "struct C { e: u8 }",
        "struct D(B);",
        "enum F { None, Some(G), A { b: H } }",
        "struct G { e: u8 }",
        "struct H { a: Option<A> }",
        "struct I { e: G }",
    ];
    let all = texts.iter().filter_map(|text| parts(&syn::parse_str(text).unwrap())).collect();
    assert_eq!(Vec::from_iter(halves(&kinds, &all)), ["A", "B", "C", "F", "G", "H"]);
}

#[test]
fn what_reads_a_request_by_field_is_found() {
    let requests = BTreeSet::from(["A".to_owned()]);
    let of = |text: &str| picked(&without_tests(syn::parse_file(text).unwrap()), &requests).len();
    for text in [
        "fn f(a: A) { g(a.b) }",
        "fn f(a: x::A<'_>) { let c = a.b; }",
        "impl B { async fn f(&self, a: &A) { self.run(move || a.b.c).await } }",
    ] {
        assert_eq!(of(text), 1, "{text}");
    }
    for text in [
        "fn f(a: A) { let A { b } = a; g(b.c) }",
        "fn f(a: B) { g(a.b) }",
        "fn f(a: A) {} fn g(a: B) { h(a.b) }",
        "#[cfg(test)] mod tests { fn f(a: A) { g(a.b) } }",
    ] {
        assert_eq!(of(text), 0, "{text}");
    }
}
