//! Reads the configuration files of the AWS CLI: sections with settings, some of which have nested
//! settings.

use std::collections::BTreeMap;

/// The settings of a section. A nested setting has the name of the outer setting and a dot before
/// its own: `iam.endpoint_url`.
pub type Settings = BTreeMap<String, String>;

/// Reads the sections, by the names between their brackets.
///
/// A comment is a line of its own, and the case of names does not matter, as in the AWS CLI. A
/// setting or section that occurs twice is refused: it would be a guess which one to use.
pub fn read(text: &str) -> Result<BTreeMap<String, Settings>, String> {
    let mut sections = BTreeMap::new();
    let mut current: Option<(String, Settings)> = None;
    let mut above = String::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim_end();
        let wrong = |why: &str| Err(format!("line {number}: {why}"));
        if line.is_empty() || line.trim_start().starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let Some(name) = name.strip_suffix(']') else { return wrong("a section ends with ]") };
            let name = name.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
            if sections.contains_key(&name) || current.as_ref().is_some_and(|(there, _)| *there == name) {
                return wrong("the section comes twice");
            }
            sections.extend(current.replace((name, Settings::new())));
            above.clear();
            continue;
        }
        let Some((_, settings)) = &mut current else {
            return wrong("a section is expected, such as [default]");
        };
        let is_below = line.starts_with([' ', '\t']);
        let Some((name, value)) = line.split_once('=') else {
            return wrong("a setting is expected, such as region = us-east-1");
        };
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        let full = if !is_below {
            above.clone_from(&name);
            name
        } else if above.is_empty() {
            return wrong("a setting begins at the beginning of its line");
        } else {
            format!("{above}.{name}")
        };
        if settings.insert(full, value.to_owned()).is_some() {
            return wrong("the setting comes twice");
        }
    }
    sections.extend(current);
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_settings() {
        let text = "# a comment\n[default]\nRegion=eu-1\naws_secret_access_key = a=b#c \n\n[profile  lab]\r\n\
                    services = local\n[services local]\niam =\n  endpoint_url = http://h:1\ns3 =\n\tendpoint_url = x\n";
        let sections = read(text).unwrap();
        assert_eq!(sections.keys().collect::<Vec<_>>(), ["default", "profile lab", "services local"]);
        assert_eq!(sections["default"]["region"], "eu-1");
        assert_eq!(sections["default"]["aws_secret_access_key"], "a=b#c");
        assert_eq!(sections["services local"]["iam.endpoint_url"], "http://h:1");
        assert_eq!(sections["services local"]["s3.endpoint_url"], "x");
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        for (text, why) in [
            ("a = b", "line 1: a section is expected, such as [default]"),
            ("[a]\n\n[a]", "line 3: the section comes twice"),
            ("[a]\nb=1\nB=2", "line 3: the setting comes twice"),
            ("[a", "line 1: a section ends with ]"),
            ("[a]\nhello", "line 2: a setting is expected, such as region = us-east-1"),
            ("[a]\n  b = 1", "line 2: a setting begins at the beginning of its line"),
        ] {
            assert_eq!(read(text).unwrap_err(), why, "{text:?}");
        }
    }
}
