//! No function is longer than 70 lines, no file longer than 620: longer ones are split, or stand on
//! a list with their reason.

use std::fs;

use syn::visit::{self, Visit};

use crate::comments::each_file;
use crate::root;

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 620;

/// File and name of each longer function, and why it is one.
const LONGER: [(&str, &str, &str); 1] =
    [("crates/digest-lanes/src/md5.rs", "block", "64 steps, a line each, as the standard has them")];

#[test]
fn functions_and_files_are_short() {
    let (mut wrong, mut longer) = (Vec::new(), Vec::new());
    for directory in ["crates", "xtask"] {
        each_file(&root().join(directory), &mut |path| {
            let (text, path) = (fs::read_to_string(path).unwrap(), path.strip_prefix(root()).unwrap());
            let lines = text.lines().count();
            if lines > FILE_LINES_MAX {
                wrong.push(format!("{} has {lines} lines, more than {FILE_LINES_MAX}", path.display()));
            }
            for (name, lines) in functions(&text).into_iter().filter(|(_, lines)| *lines > FUNCTION_LINES_MAX)
            {
                if LONGER.iter().any(|(file, of, _)| path.ends_with(file) && name == *of) {
                    longer.push(name);
                } else {
                    let of = format!("more than {FUNCTION_LINES_MAX}");
                    wrong.push(format!("{}: {name} has {lines} lines, {of}", path.display()));
                }
            }
        });
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    for (file, name, _) in LONGER {
        assert!(longer.iter().any(|found| found == name), "{file}: {name} is short: take it off the list");
    }
}

/// The functions of a file, and how many lines each has, from its `fn` to its last brace.
fn functions(text: &str) -> Vec<(String, usize)> {
    let mut reader = Reader(Vec::new());
    reader.visit_file(&syn::parse_file(text).unwrap());
    reader.0
}

struct Reader(Vec<(String, usize)>);

impl Reader {
    fn note(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let (first, last) = (signature.fn_token.span.start().line, block.brace_token.span.close().end().line);
        self.0.push((signature.ident.to_string(), last + 1 - first));
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.note(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.note(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[test]
fn functions_are_measured() {
    let text = "/// A doc.\nfn a() {\n\n}\nimpl B {\n#[x]\nasync fn b(\n) {\n fn c() {} }\n}\ntrait D { fn d(); fn e() {\n} }";
    let expected = [("a", 3), ("b", 3), ("c", 1), ("e", 2)];
    assert_eq!(functions(text), expected.map(|(name, lines)| (name.to_owned(), lines)));
}
