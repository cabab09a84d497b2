//! The rules for comments that a machine can check (CONTRIBUTING.md). They are at most 100 columns
//! wide; code may be wider, and so may a table or what is laid out as code in them. And a doc
//! comment that is a sentence begins with a verb or with the thing that it is about. Some phrases
//! are left out of all comments (docs/GLOSSARY.md, "How we write").

use std::fs;
use std::path::Path;

use crate::root;

const COLUMNS_MAX: usize = 100;
/// Words with which a sentence does not name its thing: "What a policy is for" says less than "The
/// use of a policy".
const ROUNDABOUT: [&str; 13] = [
    "What", "Who", "Whom", "Whose", "Whoever", "Whatever", "Where", "How", "Why", "By", "Of", "Those",
    "Beside",
];
/// Phrases that have to be read twice, in lower-case words, and what is written instead.
const AWKWARD: [(&str, &str); 5] = [
    ("to be had", "available"),
    ("for ever", "always"),
    ("told of", "reported, logged"),
    ("of whom no", "whose ... is not"),
    ("what is no", "what is not a"),
];

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

/// Texts without a full stop are help texts of the command line, to which the rule does not apply.
#[test]
fn doc_comments_begin_with_a_verb_or_a_thing() {
    let (mut sentences, mut roundabout) = (0, Vec::new());
    for directory in ["crates", "xtask"] {
        each_file(&root().join(directory), &mut |path| {
            let text = fs::read_to_string(path).unwrap();
            let lines: Vec<_> = text.lines().map(str::trim_start).collect();
            let is_doc = |line: &str| ["///", "//!"].iter().any(|mark| line.starts_with(mark));
            let mut at = 0;
            while at < lines.len() {
                let length = lines[at..].iter().take_while(|line| is_doc(line)).count();
                if length > 0 && lines[at + length - 1].trim_end().ends_with('.') {
                    sentences += 1;
                    let first = lines[at][3..].split_whitespace().next().unwrap_or_default();
                    if ROUNDABOUT.contains(&first) {
                        roundabout.push(format!("{}:{}", path.display(), at + 1));
                    }
                }
                at += length.max(1);
            }
        });
    }
    assert!(sentences > 5_000, "only {sentences} doc comments were found");
    assert!(roundabout.is_empty(), "{}", roundabout.join("\n"));
}

/// Returns a text as words in lower case with a space around each. "No longer" is left out, which
/// is right in all phrases.
fn words_of(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(str::to_lowercase).collect();
    format!(" {} ", words.join(" ")).replace(" no longer ", " ")
}

#[test]
fn comments_have_no_awkward_phrase() {
    let (mut comments, mut awkward) = (0, Vec::new());
    for directory in ["crates", "xtask"] {
        each_file(&root().join(directory), &mut |path| {
            let text = fs::read_to_string(path).unwrap();
            let lines: Vec<_> = text.lines().map(str::trim_start).collect();
            for comment in lines.chunk_by(|a, b| a.starts_with("//") == b.starts_with("//")) {
                if !comment[0].starts_with("//") {
                    continue;
                }
                comments += 1;
                let words = words_of(&comment.join(" "));
                let found = AWKWARD.iter().filter(|(phrase, _)| words.contains(&format!(" {phrase} ")));
                awkward.extend(found.map(|(phrase, instead)| {
                    format!("{}: {phrase} (better: {instead}): {}", path.display(), comment[0])
                }));
            }
        });
    }
    assert!(comments > 5_000, "only {comments} comments were found");
    assert!(awkward.is_empty(), "{}", awkward.join("\n"));
}

#[test]
fn phrases_are_found_across_lines() {
    let words = words_of("// The secret, what\n// is no longer there, is (to be\n// had) for everybody.");
    assert!(words.contains(" to be had ") && words.contains(" what is there "), "{words}");
    assert!(!words.contains(" for ever ") && !words.contains(" what is no "), "{words}");
}
