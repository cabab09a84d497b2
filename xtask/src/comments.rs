//! The rule for comments that a machine can hold: they are at most 100 columns wide
//! (CONTRIBUTING.md). Code may be wider, and so may a table or what is laid out as code in them.

use std::fs;
use std::path::Path;

use crate::root;

const COLUMNS_MAX: usize = 100;

/// Calls `visit` with each Rust file in a directory, and in those below it.
pub fn each_file(directory: &Path, visit: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            each_file(&path, visit);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            visit(&path);
        }
    }
}

#[test]
fn comments_are_at_most_100_columns_wide() {
    let (mut comments, mut wide) = (0, Vec::new());
    for directory in ["crates", "xtask"] {
        each_file(&root().join(directory), &mut |path| {
            let mut is_laid_out = false;
            for (index, line) in fs::read_to_string(path).unwrap().lines().enumerate() {
                let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
                let text = comment.trim_start_matches(['/', '!', ' ']);
                is_laid_out ^= text.starts_with("```");
                comments += 1;
                if !is_laid_out && !text.starts_with('|') && line.chars().count() > COLUMNS_MAX {
                    wide.push(format!("{}:{}", path.display(), index + 1));
                }
            }
        });
    }
    assert!(comments > 5_000, "only {comments} lines of comments were found");
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}
