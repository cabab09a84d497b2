//! The manual: a page in section 1 for each command, and slipway.toml(5). Pages are made from the
//! definitions of options and their help; `pages` adds what these lack: files, signals, exit
//! status.

mod pages;

use std::fs;
use std::io::Result;
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

use crate::cli::Cli;
use crate::cli::reference::{CREDENTIALS, EXAMPLE, RULES, UNIX_ACCOUNT, key};
use crate::commands::man::ManOptions;
use crate::commands::{Console, OK};
use crate::version;
use pages::{ADMIN_STATUS, PAGES, Page, STATUSES, Section, TOML};

/// The text that separates a command's description from its exit status, in its help.
const STATUS: &str = " Exit status: ";
/// The name of the configuration file's page.
const TOML_PAGE: &str = "slipway.toml";

/// A page of the manual.
#[derive(Debug)]
pub struct Rendered {
    /// The path of the page's file, relative to a directory of manual pages, such as
    /// `man1/slipway-serve.1`.
    pub file: String,
    /// The text of the page.
    pub roff: String,
}

/// Runs `slipway man`.
pub fn run(options: &ManOptions) -> ExitCode {
    let console = Console::new();
    match write(&options.dir, &options.date) {
        Ok(()) => OK.into(),
        Err(e) => console.fail(&format!("{}: {e}", options.dir.display())),
    }
}

/// Writes all pages to `dir/man1` and `dir/man5`, which are created if they do not exist. Each page
/// shows `date` (`2026-11-22`).
pub fn write(dir: &Path, date: &str) -> Result<()> {
    for section in ["man1", "man5"] {
        fs::create_dir_all(dir.join(section))?;
    }
    for page in pages(date)? {
        fs::write(dir.join(page.file), page.roff)?;
    }
    Ok(())
}

/// Returns all pages, which show `date`.
pub fn pages(date: &str) -> Result<Vec<Rendered>> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut rendered = vec![toml_page(&command, date)?];
    let mut waiting = vec![command];
    while let Some(command) = waiting.pop() {
        waiting.extend(shown(&command).cloned());
        rendered.push(command_page(command, date)?);
    }
    Ok(rendered)
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set())
}

/// Returns the name of a command's page, such as `slipway-import-versitygw`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// Returns a command's description, and its exit status if its help says it.
fn about(command: &Command) -> (String, Option<String>) {
    let text = command.get_about().map(ToString::to_string).unwrap_or_default();
    match text.split_once(STATUS) {
        Some((about, status)) => (about.trim_end_matches('.').to_owned(), Some(status.to_owned())),
        None => (text, None),
    }
}

/// Returns the text up to its first full stop.
fn first_sentence(text: &str) -> &str {
    text.split(". ").next().unwrap_or(text).trim_end_matches('.')
}

/// Returns the text with a full stop, which help texts lack.
fn full(text: &str) -> String {
    if text.ends_with('.') || text.ends_with(".)") { text.to_owned() } else { format!("{text}.") }
}

fn man(command: Command, date: &str) -> Man {
    Man::new(command).source(format!("Slipway {}", version::NUMBER)).manual("Slipway").date(date)
}

fn command_page(command: Command, date: &str) -> Result<Rendered> {
    let page = name(&command).to_owned();
    let (does, status) = about(&command);
    let extra = PAGES.iter().find(|extra| extra.name == page);
    let forms = command.clone().render_usage().to_string();
    let forms = forms.strip_prefix("Usage:").unwrap_or(&forms).to_owned();
    let subcommands: Vec<_> =
        shown(&command).map(|sub| (format!("{}(1)", name(sub)), about(sub).0)).collect();
    // What help has at its end.
    let given = command.get_after_help().map(ToString::to_string);
    let given = given.as_deref().and_then(|text| text.strip_prefix("Example: ")).map(str::to_owned);
    let man = man(command.override_usage(forms), date);

    let mut text = Vec::new();
    man.render_title(&mut text)?;
    whatis(&page, first_sentence(&does)).to_writer(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    let mut middle = Roff::new();
    middle.control("SH", ["DESCRIPTION"]);
    paragraph(&mut middle, &full(&does));
    for described in extra.map_or(&[][..], |extra| extra.description) {
        paragraph(&mut middle, described);
    }
    if !subcommands.is_empty() {
        middle.control("SH", ["COMMANDS"]);
        for (sub, about) in &subcommands {
            item(&mut middle, sub, &full(first_sentence(about)));
        }
    }
    middle.to_writer(&mut text)?;
    man.render_options_section(&mut text)?;
    let mut end = Roff::new();
    sections(&mut end, extra.map_or(&[], |extra| extra.sections));
    if let Some(given) = &given {
        end.control("SH", ["EXAMPLES"]);
        example(&mut end, given);
    }
    exit_status(&mut end, &page, status.as_deref());
    see_also(&mut end, &page, extra, subcommands.iter().map(|(sub, _)| sub.as_str()));
    end.to_writer(&mut text)?;
    Ok(Rendered { file: format!("man1/{page}.1"), roff: finish(&text) })
}

/// Makes slipway.toml(5): the options of `serve` as keys.
fn toml_page(command: &Command, date: &str) -> Result<Rendered> {
    let mut text = Vec::new();
    man(Command::new(TOML_PAGE), date).section("5").render_title(&mut text)?;
    whatis(TOML_PAGE, "configuration of slipway serve").to_writer(&mut text)?;
    let mut roff = Roff::new();
    roff.control("SH", ["DESCRIPTION"]);
    for described in TOML.description.iter().chain(&RULES) {
        paragraph(&mut roff, described);
    }
    roff.control("SH", ["KEYS"]);
    let serve = command.find_subcommand("serve").map(Command::get_arguments).into_iter().flatten();
    for arg in serve {
        if let Some(key) = key(arg) {
            toml_key(&mut roff, key, arg);
        }
    }
    roff.control("SH", ["CREDENTIALS"]);
    paragraph(
        &mut roff,
        "Root's keys are not options, since `ps` or a copy of the file would show them. They come from the first of \
         these that has them:",
    );
    for (number, from) in CREDENTIALS.iter().enumerate() {
        roff.control("IP", [format!("{}.", number + 1).as_str(), "3"]);
        roff.text([roman(*from)]);
    }
    paragraph(&mut roff, UNIX_ACCOUNT);
    roff.control("SH", ["EXAMPLES"]);
    example(&mut roff, EXAMPLE);
    sections(&mut roff, TOML.sections);
    see_also(&mut roff, TOML_PAGE, Some(&TOML), []);
    roff.to_writer(&mut text)?;
    Ok(Rendered { file: format!("man5/{TOML_PAGE}.5"), roff: finish(&text) })
}

fn toml_key(roff: &mut Roff, key: &str, arg: &Arg) {
    roff.control("TP", []);
    let mut head = vec![bold(key)];
    if let Some(default) = arg.get_default_values().first() {
        head.push(roman(format!(" [default: {}]", default.to_string_lossy())));
    }
    roff.text(head);
    roff.text([roman(full(&arg.get_help().map(ToString::to_string).unwrap_or_default()))]);
    if let Some(variable) = arg.get_env() {
        roff.text([roman("Variable: "), bold(variable.to_string_lossy()), roman(".")]);
    }
    let choices = arg.get_possible_values();
    let explained = choices.iter().filter_map(|choice| Some((choice.get_name(), choice.get_help()?)));
    for (choice, help) in explained {
        roff.control("RS", []);
        item(roff, choice, &full(&help.to_string()));
        roff.control("RE", []);
    }
}

/// Writes the section `NAME`, in the form that apropos(1) reads.
fn whatis(page: &str, does: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{page} - {does}"))]);
    roff
}

fn sections(roff: &mut Roff, sections: &[Section]) {
    for section in sections {
        roff.control("SH", [section.title]);
        for (what, meaning) in section.items {
            match *what {
                "" => paragraph(roff, meaning),
                "$" => example(roff, meaning),
                what => item(roff, what, meaning),
            }
        }
    }
}

fn exit_status(roff: &mut Roff, page: &str, said: Option<&str>) {
    roff.control("SH", ["EXIT STATUS"]);
    let known = STATUSES.iter().find(|(name, _)| *name == page).map(|(_, statuses)| *statuses);
    let of_admin = page.starts_with("slipway-admin-").then_some(ADMIN_STATUS);
    let statuses = said.or(known).or(of_admin).unwrap_or("0 success; 2 the command line is wrong");
    for status in statuses.split("; ") {
        let (number, meaning) = status.split_once(' ').unwrap_or((status, ""));
        item(roff, number, &full(meaning));
    }
}

fn see_also<'a>(
    roff: &mut Roff,
    page: &str,
    extra: Option<&Page>,
    subcommands: impl IntoIterator<Item = &'a str>,
) {
    let mut others: Vec<&str> = subcommands.into_iter().collect();
    others.extend(extra.map_or(&[][..], |extra| extra.see_also));
    if page != "slipway" {
        others.insert(0, "slipway(1)");
    }
    let mut line: Vec<Inline> = Vec::new();
    for (index, other) in others.iter().enumerate() {
        let (title, section) = other.split_at(other.rfind('(').unwrap_or(other.len()));
        line.push(bold(title));
        line.push(roman(if index + 1 < others.len() { format!("{section}, ") } else { section.to_owned() }));
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text(line);
}

fn paragraph(roff: &mut Roff, text: &str) {
    roff.control("PP", []);
    roff.text([roman(text)]);
}

fn item(roff: &mut Roff, what: &str, meaning: &str) {
    roff.control("TP", []);
    roff.text([bold(what)]);
    roff.text([roman(meaning)]);
}

fn example(roff: &mut Roff, text: &str) {
    roff.control("RS", ["4"]).control("nf", []);
    roff.text([roman(text.trim_end())]);
    roff.control("fi", []).control("RE", []);
}

/// Joins the texts of several writers, makes `code` bold, and escapes the characters that troff
/// would otherwise print as others.
fn finish(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let preamble = Roff::new().render();
    let text = text.replace(&preamble, "").replace(".br\n\n.br\n", ".sp\n").replace(".br\n\n", ".br\n");
    let mut finished = preamble;
    let mut previous = "";
    for line in text.lines() {
        // A section begins with a paragraph anyway.
        if line == ".PP" && previous.starts_with(".SH") {
            continue;
        }
        previous = line;
        let ends = line.matches('`').count();
        for (index, piece) in line.split('`').enumerate() {
            if index > 0 && index == ends && ends % 2 == 1 {
                finished.push_str("\\(ga");
            } else if index > 0 {
                finished.push_str(if index % 2 == 1 { "\\fB" } else { "\\fR" });
            }
            finished.push_str(&piece.replace('~', "\\(ti").replace('^', "\\(ha"));
        }
        finished.push('\n');
    }
    finished
}
