//! Prints where a fault could be seeded in Rust files, as JSON: each place, and the text that
//! stands there instead, in which `::seeded_fault::on(@N@)` decides at run time whether fault `@N@`
//! is on. `tests/seeded_faults/run.py` draws from this.
//!
//! `cargo run -p xtask --example fault_sites -- crates/backend-posix/src/lib.rs ...` follows the
//! modules of each file that it is given, except those that are for tests. What macros are given is
//! not looked at.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Expr, ItemMod, Pat, Stmt};

/// The calls that make what was written last.
const FLUSHES: &[&str] = &["fsync", "fdatasync", "syncfs", "write_out"];
/// The calls of two places, each a directory and a name.
const RENAMES: &[&str] = &["renameat", "renameat_with"];
/// The calls that take a lock, and what they return when they have it.
const LOCKS: &[(&str, &str)] = &[("try_lock_file", "Ok(true)"), ("lock_file", "Ok(())")];
/// The words in names of constants that are numbers.
const NUMBERS: &[&str] = &["BYTES", "COUNT", "LENGTH", "LOCKS", "MAX", "MIN", "TRIES"];
/// Flags, and what they become.
const FLAGS: &[(&str, &str, &str)] = &[
    ("RenameFlags", "NOREPLACE", "empty()"),
    ("RenameFlags", "EXCHANGE", "empty()"),
    ("FlockOperation", "NonBlockingLockExclusive", "NonBlockingLockShared"),
];

fn main() -> ExitCode {
    let mut sites = Vec::new();
    for file in std::env::args().skip(1) {
        if let Err(error) = of_file(Path::new(&file), &mut sites) {
            eprintln!("{file}: {error}");
            return ExitCode::FAILURE;
        }
    }
    println!("{}", Value::Array(sites));
    ExitCode::SUCCESS
}

/// Adds the places of a file and of the modules below it.
fn of_file(path: &Path, sites: &mut Vec<Value>) -> Result<(), Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(path)?;
    let file = syn::parse_file(&text)?;
    let (functions, blocks, modules) = Default::default();
    let mut finder = Finder { path, text: &text, functions, blocks, modules, sites };
    finder.visit_file(&file);
    let modules = finder.modules;
    let folder = path.parent().unwrap_or(Path::new("."));
    let stem = path.file_stem().unwrap_or_default();
    let folder =
        if stem == "lib" || stem == "main" || stem == "mod" { folder.to_owned() } else { folder.join(stem) };
    for module in modules {
        of_file(&module_file(&folder, &module), sites)?;
    }
    Ok(())
}

fn module_file(folder: &Path, module: &str) -> PathBuf {
    let plain = folder.join(format!("{module}.rs"));
    if plain.exists() { plain } else { folder.join(module).join("mod.rs") }
}

struct Finder<'a> {
    path: &'a Path,
    text: &'a str,
    /// The names of what is around the present place.
    functions: Vec<String>,
    /// The blocks around the present place.
    blocks: Vec<Range<usize>>,
    /// The modules of this file that have files of their own.
    modules: Vec<String>,
    sites: &'a mut Vec<Value>,
}

impl Finder<'_> {
    fn text_of(&self, part: &impl Spanned) -> &str {
        &self.text[part.span().byte_range()]
    }

    /// Adds a place. In `replacement`, `@NOW@` stands for what is there now.
    fn add(&mut self, kind: &str, what: &str, part: &impl Spanned, replacement: &str) {
        let Some(function) = self.functions.last() else { return };
        let span = part.span();
        let (range, now) = (span.byte_range(), self.text_of(part));
        let site = json!({
            "file": self.path.to_string_lossy(),
            "line": span.start().line,
            "start": range.start,
            "end": range.end,
            "function": function,
            "kind": kind,
            "what": what,
            "now": now,
            "then": replacement.replace("@NOW@", now),
        });
        self.sites.push(site);
    }

    /// Adds what can be wrong with a condition, or with each side of `&&` and `||` in it.
    fn condition(&mut self, expr: &Expr) {
        match expr {
            Expr::Let(_) => {}
            Expr::Binary(binary) if matches!(binary.op, BinOp::And(_) | BinOp::Or(_)) => {
                self.condition(&binary.left);
                self.condition(&binary.right);
            }
            Expr::Paren(inner) => self.condition(&inner.expr),
            _ => {
                self.add("condition", "inverted", expr, "(::seeded_fault::on(@N@) ^ (@NOW@))");
                self.add("condition", "never", expr, "(!::seeded_fault::on(@N@) && (@NOW@))");
                self.add("condition", "always", expr, "(::seeded_fault::on(@N@) || (@NOW@))");
            }
        }
    }

    fn binary(&mut self, binary: &syn::ExprBinary) {
        let (kind, other) = match binary.op {
            BinOp::Lt(_) => ("comparison", "<="),
            BinOp::Le(_) => ("comparison", "<"),
            BinOp::Gt(_) => ("comparison", ">="),
            BinOp::Ge(_) => ("comparison", ">"),
            BinOp::Eq(_) => ("comparison", "!="),
            BinOp::Ne(_) => ("comparison", "=="),
            BinOp::And(_) => ("logic", "||"),
            BinOp::Or(_) => ("logic", "&&"),
            BinOp::Add(_) => ("arithmetic", "-"),
            BinOp::Sub(_) => ("arithmetic", "+"),
            BinOp::AddAssign(_) => ("arithmetic", "-="),
            BinOp::SubAssign(_) => ("arithmetic", "+="),
            _ => return,
        };
        if kind == "logic" && (has_let(&binary.left) || has_let(&binary.right)) {
            return;
        }
        let op = self.text_of(&binary.op).to_owned();
        let (left, right) = (self.text_of(&binary.left), self.text_of(&binary.right));
        let then = format!("(if !::seeded_fault::on(@N@) {{ @NOW@ }} else {{ {left} {other} {right} }})");
        self.add(kind, &format!("{op} becomes {other}"), binary, &then);
    }

    fn call(&mut self, call: &syn::ExprCall) {
        let Expr::Path(function) = &*call.func else { return };
        let Some(name) = function.path.segments.last().map(|segment| segment.ident.to_string()) else {
            return;
        };
        let instead = |value: &str| format!("(if !::seeded_fault::on(@N@) {{ @NOW@ }} else {{ {value} }})");
        if FLUSHES.contains(&&*name) {
            self.add("flush", "left out", call, &instead("Ok(())"));
        }
        if let Some((_, held)) = LOCKS.iter().find(|(lock, _)| *lock == name) {
            self.add("lock", "left out", call, &instead(held));
        }
        let arguments: Vec<&str> = call.args.iter().map(|argument| self.text_of(argument)).collect();
        if let [from, from_name, to, to_name, rest @ ..] = &arguments[..]
            && RENAMES.contains(&&*name)
            // An exchange is the same both ways.
            && !rest.iter().any(|flags| flags.contains("EXCHANGE"))
        {
            let rest = rest.join(", ");
            let swapped =
                format!("{}({to}, {to_name}, {from}, {from_name}, {rest})", self.text_of(&call.func));
            self.add("rename", "from and to swapped", call, &instead(&swapped));
        }
    }

    fn path(&mut self, expr: &syn::ExprPath) {
        let names: Vec<String> = expr.path.segments.iter().map(|part| part.ident.to_string()).collect();
        let Some(name) = names.last() else { return };
        for (of, flag, other) in FLAGS {
            if name == flag && names.len() > 1 && names[names.len() - 2] == *of {
                let kind = if *of == "RenameFlags" { "rename" } else { "lock" };
                let then = format!("(if !::seeded_fault::on(@N@) {{ @NOW@ }} else {{ {of}::{other} }})");
                self.add(kind, &format!("{flag} becomes {other}"), expr, &then);
            }
        }
        let is_constant = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        if is_constant && names.len() == 1 && NUMBERS.iter().any(|word| name.contains(word)) {
            self.off_by_one(expr);
        }
    }

    fn off_by_one(&mut self, expr: &impl Spanned) {
        self.add("limit", "one more", expr, "(@NOW@ + (if ::seeded_fault::on(@N@) { 1 } else { 0 }))");
        self.add("limit", "one less", expr, "(@NOW@ - (if ::seeded_fault::on(@N@) { 1 } else { 0 }))");
    }

    /// True if the present block has this text.
    fn block_has(&self, text: &str) -> bool {
        self.blocks.last().is_some_and(|block| self.text[block.clone()].contains(text))
    }

    /// Visits the body of what has a name.
    fn within(&mut self, name: &str, visit: impl FnOnce(&mut Self)) {
        self.functions.push(name.to_owned());
        visit(self);
        self.functions.pop();
    }
}

fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// True if `wide` certainly takes all that `narrow` takes, which has no guard.
fn covers(wide: &Pat, narrow: &Pat) -> bool {
    match (wide, narrow) {
        (_, Pat::Guard(_) | Pat::Wild(_) | Pat::Ident(_)) => false,
        (Pat::Wild(_), _) => true,
        (Pat::TupleStruct(wide), Pat::TupleStruct(narrow)) => {
            wide.path.segments.last().map(|part| &part.ident)
                == narrow.path.segments.last().map(|part| &part.ident)
                && wide.elems.iter().all(|part| matches!(part, Pat::Wild(_) | Pat::Ident(_)))
        }
        // A name in lower case binds, others are constants.
        (Pat::Ident(ident), _) => {
            ident.subpat.is_none() && ident.ident.to_string().starts_with(char::is_lowercase)
        }
        _ => false,
    }
}

/// True for what is compiled only for tests.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || (attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test")))
    })
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if is_test(&item.attrs) {
            return;
        }
        match &item.content {
            Some(_) => visit::visit_item_mod(self, item),
            None => self.modules.push(item.ident.to_string()),
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.sig.constness.is_none() && !is_test(&item.attrs) {
            self.within(&item.sig.ident.to_string(), |finder| finder.visit_block(&item.block));
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.constness.is_none() && !is_test(&item.attrs) {
            self.within(&item.sig.ident.to_string(), |finder| finder.visit_block(&item.block));
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_test(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    // Neither can ask at run time.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}

    fn visit_expr_repeat(&mut self, expr: &'ast syn::ExprRepeat) {
        self.visit_expr(&expr.expr);
    }

    fn visit_pat(&mut self, pattern: &'ast Pat) {
        if let Pat::Guard(guarded) = pattern {
            self.condition(&guarded.guard);
            self.visit_expr(&guarded.guard);
        }
    }

    fn visit_expr_match(&mut self, expr: &'ast syn::ExprMatch) {
        for (index, arm) in expr.arms.iter().enumerate() {
            if expr.arms[index + 1..].iter().any(|later| covers(&later.pat, &arm.pat)) {
                self.add("arm", "left out", &arm.pat, "@NOW@ if !::seeded_fault::on(@N@)");
            }
        }
        visit::visit_expr_match(self, expr);
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.blocks.push(block.span().byte_range());
        visit::visit_block(self, block);
        self.blocks.pop();
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if let Stmt::Expr(Expr::Try(step), Some(_)) = statement {
            self.add("step", "left out", step, "if !::seeded_fault::on(@N@) { @NOW@; }");
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let (Pat::Ident(bound), Some(init)) = (&local.pat, &local.init)
            && bound.ident.to_string().trim_start_matches('_').starts_with("lock")
            && self.text_of(&init.expr).contains("lock")
            && !matches!(*init.expr, Expr::Closure(_))
        {
            // What asks whether it is held has an Option already.
            let name = &bound.ident;
            let asks = ["is_some", "is_none"].iter().any(|ask| self.block_has(&format!("{name}.{ask}()")));
            let now = if asks { "(@NOW@)" } else { "Some(@NOW@)" };
            let then = format!("if !::seeded_fault::on(@N@) {{ {now} }} else {{ None }}");
            self.add("lock", "not taken", &init.expr, &then);
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        self.condition(&expr.cond);
        visit::visit_expr_if(self, expr);
    }

    fn visit_expr_while(&mut self, expr: &'ast syn::ExprWhile) {
        self.condition(&expr.cond);
        visit::visit_expr_while(self, expr);
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        self.binary(expr);
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_call(&mut self, expr: &'ast syn::ExprCall) {
        self.call(expr);
        // A function's name is no value.
        for argument in &expr.args {
            self.visit_expr(argument);
        }
        if !matches!(*expr.func, Expr::Path(_)) {
            self.visit_expr(&expr.func);
        }
    }

    fn visit_expr_path(&mut self, expr: &'ast syn::ExprPath) {
        self.path(expr);
    }

    fn visit_expr_lit(&mut self, expr: &'ast syn::ExprLit) {
        match &expr.lit {
            syn::Lit::Bool(_) => self.add("boolean", "flipped", expr, "(::seeded_fault::on(@N@) ^ @NOW@)"),
            syn::Lit::Int(number) if number.base10_digits() != "0" => self.off_by_one(expr),
            _ => {}
        }
    }
}
