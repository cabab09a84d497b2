//! Compares two reports, side by side.

use std::fmt::Write as _;

use crate::error::Result;
use crate::report::Report;
use crate::summary::{FIGURES, Row, Spread, rows};

/// Returns a table of ratios: the medians of the second report divided by those of the first. `~`
/// marks ratios that may be noise. Fails if the reports have no results in common.
pub fn compare(first: &Report, second: &Report) -> Result<String> {
    let (first_rows, second_rows) = (rows(first), rows(second));
    if !first_rows.iter().any(|a| second_rows.iter().any(|b| a.key == b.key)) {
        return Err("the two reports have no step in common: nothing can be compared".to_owned());
    }
    let mut out = format!("A: {}\nB: {}\n", about(first), about(second));
    if (&first.machine.processor, first.machine.processors, &first.machine.kernel)
        != (&second.machine.processor, second.machine.processors, &second.machine.kernel)
    {
        out.push_str(
            "the reports are of two machines: the ratios show differences of the machines as well as of the \
             servers\n",
        );
    }
    let _ = write!(
        out,
        "\nB / A; ~ where the rounds of A and B overlap, ? where there is only one round\n{:>5} {:24}",
        "conc", "operation"
    );
    for (name, _) in FIGURES {
        let _ = write!(out, "{name:>12}");
    }
    out.push('\n');
    let mut title = String::new();
    for a in &first_rows {
        let Some(b) = second_rows.iter().find(|row| row.key == a.key) else { continue };
        if title != a.key.title {
            title.clone_from(&a.key.title);
            let _ = writeln!(out, "{title}");
        }
        let _ = writeln!(out, "{}", line(a, b));
    }
    for (name, ours, theirs) in [("A", &first_rows, &second_rows), ("B", &second_rows, &first_rows)] {
        for row in ours.iter().filter(|row| theirs.iter().all(|other| other.key != row.key)) {
            let _ = writeln!(
                out,
                "only in {name}: {}, {} at once, {}",
                row.key.title,
                row.key.concurrency,
                row.key.operation.name()
            );
        }
    }
    out.truncate(out.trim_end().len());
    Ok(out)
}

fn about(report: &Report) -> String {
    let errors = match report.errors() {
        0 => String::new(),
        errors => format!(", {errors} ERRORS"),
    };
    let end = if report.interrupted { ", interrupted" } else { "" };
    let endpoints = report.settings.endpoints.join(", ");
    format!("{}, {endpoints}, {}{errors}{end}", report.began, report.machine.sentence())
}

fn line(a: &Row<'_>, b: &Row<'_>) -> String {
    let mut out = format!("{:>5} {:24}", a.key.concurrency, a.key.operation.name());
    for (_, figure) in FIGURES {
        let _ = write!(out, "{:>12}", ratio(figure(a), figure(b), a.rounds.len().min(b.rounds.len())));
    }
    out
}

fn ratio(a: Option<Spread>, b: Option<Spread>, rounds: usize) -> String {
    let (Some(a), Some(b)) = (a, b) else { return "-".to_owned() };
    if a.median <= 0.0 {
        return "-".to_owned();
    }
    let mark = match () {
        () if rounds < 2 => "?",
        () if a.least <= b.most && b.least <= a.most => "~",
        () => " ",
    };
    format!("{:.2}{mark}", b.median / a.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_marked() {
        let spread = |least, median, most| Some(Spread { least, median, most });
        assert_eq!(ratio(spread(1.0, 2.0, 3.0), spread(4.0, 5.0, 6.0), 3), "2.50 ");
        assert_eq!(ratio(spread(1.0, 2.0, 3.0), spread(3.0, 5.0, 6.0), 3), "2.50~");
        assert_eq!(ratio(spread(1.0, 2.0, 3.0), spread(4.0, 5.0, 6.0), 1), "2.50?");
        assert_eq!(ratio(None, spread(4.0, 5.0, 6.0), 3), "-");
        assert_eq!(ratio(spread(0.0, 0.0, 0.0), spread(4.0, 5.0, 6.0), 3), "-");
    }
}
