//! No module names one that names it, straight or by way of others: then a crate can be read from
//! one end to the other, and each part tested with what is below it alone.
//!
//! Methods name no module: an inherent `impl` stands in the folder of its type, not above its
//! callers.
//!
//! So do folders, each as a whole.
//!
//! A module is a file. What a folder's `mod.rs` re-exports is named by its own module inside that
//! folder, so that `mod.rs` comes after its files. Code under `cfg(test)` may name anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::root;

/// A module's path in its crate; the crate's root has none.
pub type Module = Vec<String>;

/// Which modules each module names, and one of the paths by which it does.
type Names = BTreeMap<Module, BTreeMap<Module, String>>;

#[test]
fn modules_name_only_earlier_ones() {
    let crates = fs::read_dir(root().join("crates")).unwrap().map(Result::unwrap);
    let mut wrong = Vec::new();
    for entry in crates {
        let crate_name = entry.file_name().into_string().unwrap();
        let names = names(&entry.path().join("src"));
        let folders = of_folders(&names);
        for names in [names, folders] {
            for circle in circles(&names) {
                for module in &circle {
                    let into = names[module].iter().filter(|(named, _)| circle.contains(*named));
                    wrong.extend(
                        into.map(|(_, path)| format!("{crate_name}: {} names {path}", shown(module))),
                    );
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

pub fn shown(module: &Module) -> String {
    if module.is_empty() { "the root".to_owned() } else { module.join("::") }
}

/// Returns the modules that each file of a crate names.
fn names(source: &Path) -> Names {
    let mut files = Vec::new();
    collect(source, &Module::new(), &mut files);
    let modules: BTreeSet<Module> = files.iter().map(|(module, _)| module.clone()).collect();
    let without_tests = without_tests(files).into_iter();
    without_tests.map(|(module, text)| (module.clone(), read(&module, &text, &modules))).collect()
}

/// The modules of a crate that are not for tests alone, and their text.
pub fn modules_with_text(source: &Path) -> Vec<(Module, String)> {
    let mut files = Vec::new();
    collect(source, &Module::new(), &mut files);
    without_tests(files)
}

fn without_tests(mut files: Vec<(Module, String)>) -> Vec<(Module, String)> {
    let tests: Vec<Module> = files.iter().flat_map(|(module, text)| test_files(module, text)).collect();
    files.retain(|(module, _)| !tests.iter().any(|test| module.starts_with(test)));
    files
}

/// The modules with files of their own that a file has for tests alone.
fn test_files(module: &Module, text: &str) -> Vec<Module> {
    let tests = syn::parse_file(text).unwrap().items.into_iter().filter_map(|item| match item {
        syn::Item::Mod(item) if item.content.is_none() && is_test(&item.attrs) => Some(item.ident),
        _ => None,
    });
    tests.map(|test| [&module[..], &[test.to_string()]].concat()).collect()
}

fn collect(folder: &Path, module: &Module, files: &mut Vec<(Module, String)>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let below = || [&module[..], std::slice::from_ref(&stem)].concat();
        if path.is_dir() {
            collect(&path, &below(), files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && stem != "main" {
            let is_own = stem == "mod" || (stem == "lib" && module.is_empty());
            files.push((if is_own { module.clone() } else { below() }, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Finds the modules that a file names.
struct Reader<'a> {
    module: &'a Module,
    /// The number of open modules that have no file of their own.
    inside: usize,
    modules: &'a BTreeSet<Module>,
    /// Modules by the names that the file has for them.
    imported: BTreeMap<String, Module>,
    named: BTreeMap<Module, String>,
}

/// Returns the modules that a file with this text names.
fn read(module: &Module, text: &str, modules: &BTreeSet<Module>) -> BTreeMap<Module, String> {
    let (imported, named) = (BTreeMap::new(), BTreeMap::new());
    let mut reader = Reader { module, inside: 0, modules, imported, named };
    let file = syn::parse_file(text).unwrap();
    // Once more, now that all imports are known.
    reader.visit_file(&file);
    reader.visit_file(&file);
    reader.named
}

impl Reader<'_> {
    /// Takes note of a path, as far as it leads through modules of this crate. Returns the module
    /// if that is all of it.
    fn note(&mut self, path: &[String]) -> Option<Module> {
        let (mut place, mut rest) = (self.module.clone(), path);
        let mut ups = 0_usize;
        while let Some(first) = rest.first() {
            match first.as_str() {
                "crate" => place = Module::new(),
                "self" => {}
                "super" => ups += 1,
                _ => break,
            }
            rest = &rest[1..];
        }
        for _ in 0..ups.saturating_sub(self.inside) {
            place.pop();
        }
        if rest.len() == path.len() {
            let first = rest.first()?;
            let child = [&place[..], &rest[..1]].concat();
            // Else it is something of another crate, or of this file.
            place = if self.modules.contains(&child) { child } else { self.imported.get(first)?.clone() };
            rest = &rest[1..];
        }
        while let Some(part) = rest.first() {
            let below = [&place[..], std::slice::from_ref(part)].concat();
            if !self.modules.contains(&below) {
                break;
            }
            (place, rest) = (below, &rest[1..]);
        }
        if place != *self.module {
            self.named.entry(place.clone()).or_insert_with(|| path.join("::"));
        }
        rest.is_empty().then_some(place)
    }

    fn import(&mut self, name: &str, path: &[String]) {
        if let Some(module) = self.note(path) {
            self.imported.insert(name.to_owned(), module);
        }
    }

    fn note_tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.note_tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) if name.ident == "self" => {
                let last = before.last().cloned().unwrap_or_default();
                self.import(&last, before);
            }
            syn::UseTree::Name(name) => self.import(&name.ident.to_string(), &with(&name.ident)),
            syn::UseTree::Rename(name) => self.import(&name.rename.to_string(), &with(&name.ident)),
            syn::UseTree::Glob(_) => {
                let Some(module) = self.note(before) else { return };
                let children = self
                    .modules
                    .iter()
                    .filter(|child| child.split_last().is_some_and(|(_, above)| above == module));
                let children: Vec<_> =
                    children.filter_map(|child| Some((child.last()?.clone(), child.clone()))).collect();
                self.imported.extend(children);
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.note_tree(before, tree)),
        }
    }

    /// Paths in what is given to a macro.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.note(&std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.note(&std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.note_tokens(group.stream());
                    }
                }
            }
        }
        self.note(&path);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.inside += 1;
        visit::visit_item_mod(self, item);
        self.inside -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.note_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.note(&path.segments.iter().map(|part| part.ident.to_string()).collect::<Vec<_>>());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.note_tokens(call.tokens.clone());
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.note_tokens(list.tokens.clone());
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Fn(item) => &item.attrs[..],
            syn::ImplItem::Const(item) => &item.attrs,
            _ => &[],
        };
        if !is_test(attributes) {
            visit::visit_impl_item(self, item);
        }
    }
}

pub fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// True under `cfg(test)`.
pub fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// Returns the modules that the folders and files at the top of a crate name, each as a whole. The
/// root names all.
fn of_folders(names: &Names) -> Names {
    let folder = |module: &Module| module.first().map(|name| vec![name.clone()]);
    let mut folders = Names::new();
    for (module, all) in names {
        let Some(from) = folder(module) else { continue };
        let below = folders.entry(from.clone()).or_default();
        for (to, path) in all {
            if let Some(to) = folder(to).filter(|to| *to != from) {
                below.entry(to).or_insert_with(|| path.clone());
            }
        }
    }
    folders
}

/// The groups of modules that name each other, straight or by way of others.
fn circles(names: &Names) -> Vec<BTreeSet<Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        names.keys().map(|module| (module, reached_from(module, names))).collect();
    let mut circles: Vec<BTreeSet<Module>> = Vec::new();
    for (module, reaches) in &reached {
        let is_known = circles.iter().any(|circle| circle.contains(*module));
        if reaches.contains(module) && !is_known {
            let back = reaches.iter().filter(|other| reached[*other].contains(module));
            circles.push(back.map(|other| (*other).clone()).collect());
        }
    }
    circles
}

fn reached_from<'a>(start: &'a Module, names: &'a Names) -> BTreeSet<&'a Module> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![start]);
    while let Some(module) = next.pop() {
        let all = names.get(module).into_iter().flat_map(BTreeMap::keys);
        next.extend(all.filter(|one| reached.insert(*one)));
    }
    reached
}

#[test]
fn circles_are_found() {
    let at = |path: &str| path.split("::").map(str::to_owned).collect::<Module>();
    let modules: BTreeSet<Module> =
        ["a", "b", "b::c", "d"].map(at).into_iter().chain([Module::new()]).collect();
    let read = |module: &str, text: &str| (at(module), read(&at(module), text, &modules));
    assert_eq!(test_files(&at("b"), "#[cfg(test)] mod x; mod y; #[cfg(test)] mod z {}"), [at("b::x")]);
    let of = |text: &str| read("b::c", text).1.into_keys().map(|named| shown(&named)).collect::<Vec<_>>();
    assert_eq!(of("use crate::{a::X, d}; use std::io;"), ["a", "d"]);
    assert_eq!(of("fn f() { super::g(); super::super::a::g() }"), ["a", "b"]);
    assert_eq!(of("mod x { use super::super::h; }"), ["b"]);
    assert_eq!(of("fn f() { println!(\"{}\", crate::a::g()) }"), ["a"]);
    assert_eq!(of("#[cfg(test)] mod tests { use crate::a; } #[cfg(test)] use crate::d;"), [""; 0]);
    assert_eq!(of("use crate::Root;"), ["the root"]);
    assert_eq!(of("fn f() { x::g() } use crate::a as x;"), ["a"]);
    assert_eq!(of("use super::super::*; fn f() { d::g() }"), ["the root", "d"]);
    assert_eq!(of("crate::a::m!(); #[arg(parser = crate::d::f)] struct S;"), ["a", "d"]);
    assert_eq!(
        read("d", "use crate::b; fn f() { b::c::g() }").1.into_keys().collect::<Vec<_>>(),
        [at("b"), at("b::c")]
    );
    let names = Names::from([
        read("a", "use crate::b::c::X;"),
        read("b", "mod c; pub use c::X;"),
        read("b::c", "use crate::d::Y;"),
        read("d", "fn f() -> crate::a::Z {}"),
    ]);
    assert_eq!(circles(&names), [BTreeSet::from(["a", "b::c", "d"].map(at))]);
    let names = Names::from([
        read("a", "use crate::b::c::X; use crate::Root;"),
        read("b::c", ""),
        read("b", "use crate::a::Y;"),
    ]);
    assert!(circles(&names).is_empty());
    assert_eq!(circles(&of_folders(&names)), [BTreeSet::from(["a", "b"].map(at))]);
}
