//! Writes a report as one HTML page, without scripts and without references to anything outside it.

mod resources;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use charts::{COLOURS, Lines, Scale, Series, bars, begin_page, escaped};

use crate::report::{Report, Round};
use crate::request::Operation;
use crate::summary::{Row, rows};
use crate::units::{MIB, float, show_number, show_time};

/// Writes a report as an HTML page.
pub fn html(report: &Report) -> String {
    let rows = rows(report);
    let mut out = begin_page("slipway bench");
    facts(&mut out, report);
    table(&mut out, &rows);
    errors(&mut out, report);
    resources::parts(&mut out, report);
    resources::trials(&mut out, report);
    resources::servers(&mut out, report);
    resources::devices(&mut out, report);
    resources::limits(&mut out, report);
    let operations: BTreeSet<Operation> = rows.iter().map(|row| row.key.operation).collect();
    for operation in operations {
        let of: Vec<&Row<'_>> = rows.iter().filter(|row| row.key.operation == operation).collect();
        let _ = write!(out, "<h2>{}</h2>\n<div class=\"charts\">", operation.name());
        out.push_str(&swept(
            "Requests a second",
            show_number,
            &of,
            &[("", &|row| row.figure(|_, of| Some(of.per_second)).map(|s| s.median))],
        ));
        if of.iter().any(|row| row.rounds.iter().any(|(_, result)| result.bytes_per_second > 1e5)) {
            let rate = |row: &Row<'_>| row.figure(|_, of| Some(of.bytes_per_second / MIB)).map(|s| s.median);
            out.push_str(&swept("MiB a second", show_number, &of, &[("", &rate)]));
        }
        out.push_str(&latencies(&of));
        let p99 = |row: &Row<'_>| row.figure(|_, of| of.latency.as_ref().map(|l| l.p99)).map(|s| s.median);
        out.push_str(&swept("Latency, 99th percentile", show_time, &of, &[("", &p99)]));
        out.push_str("</div>\n");
    }
    out.push_str("<h2>CPU</h2>\n<div class=\"charts\">");
    // CPU is of a step, whatever the operations in it: once for each.
    let mut steps: Vec<&Row<'_>> = Vec::new();
    for row in &rows {
        if !steps.iter().any(|other| other.key.is_of_step(&row.key)) {
            steps.push(row);
        }
    }
    let server = |row: &Row<'_>| row.figure(|round, _| round.server_cpu_us).map(|s| s.median);
    let client = |row: &Row<'_>| row.figure(|round, _| round.client_cpu_us).map(|s| s.median);
    out.push_str(&swept(
        "CPU time per request",
        show_time,
        &steps,
        &[("server: ", &server), ("load generator: ", &client)],
    ));
    out.push_str("</div>\n</body></html>\n");
    out
}

fn facts(out: &mut String, report: &Report) {
    let settings = &report.settings;
    let kind = settings.kind();
    let payload = if settings.signed_payload { "signed" } else { "unsigned (presigned requests)" };
    let rounds = if settings.repeat == 1 {
        "one round".to_owned()
    } else {
        format!("medians of {} rounds", settings.repeat)
    };
    out.push_str("<dl>");
    for (name, text) in [
        ("Began", report.began.clone()),
        ("Endpoints", settings.endpoints.join(", ")),
        ("Preset", settings.preset.clone().unwrap_or_else(|| "none".to_owned())),
        (
            "Load",
            format!(
                "{kind}; threads: {}; {} s a step; {rounds}; payload {payload}",
                settings.threads,
                show_number(float(settings.duration_ms) / 1e3)
            ),
        ),
        ("Load generator", report.machine.sentence()),
        ("Version", format!("slipway {}", report.version)),
    ] {
        let _ = write!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(&text));
    }
    out.push_str("</dl>\n");
    if report.interrupted {
        out.push_str("<p class=\"bad\">The measurement was interrupted.</p>\n");
    }
}

fn table(out: &mut String, rows: &[Row<'_>]) {
    out.push_str("<h2>Results</h2>\n<div class=\"wide\"><table><tr>");
    for head in [
        "Step",
        "Operation",
        "At once",
        "Endpoints",
        "req/s",
        "MiB/s",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "Errors",
        "Server CPU",
        "Own CPU",
        "Limited by",
    ] {
        let _ = write!(out, "<th>{head}</th>");
    }
    out.push_str("</tr>\n");
    for (index, row) in rows.iter().enumerate() {
        let key = &row.key;
        // CPU is of a step, whatever the operations in it.
        let first = !rows[..index].iter().any(|other| other.key.is_of_step(key));
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
            escaped(&key.title),
            key.operation.name(),
            key.concurrency,
            key.endpoints
        );
        let mut cell = |text: Option<String>| {
            let _ = write!(out, "<td>{}</td>", escaped(&text.unwrap_or_else(|| "-".to_owned())));
        };
        cell(row.figure(|_, of| Some(of.per_second)).map(|s| show_number(s.median)));
        cell(row.figure(|_, of| Some(of.bytes_per_second / MIB)).map(|s| show_number(s.median)));
        let latency =
            |of: fn(&crate::report::Latency) -> f64| row.figure(|_, result| result.latency.as_ref().map(of));
        for figure in [
            latency(|l| l.p50),
            latency(|l| l.p90),
            latency(|l| l.p99),
            latency(|l| l.p999),
            latency(|l| l.max),
        ] {
            cell(figure.map(|s| show_time(s.median)));
        }
        let errors: u64 = row.rounds.iter().flat_map(|(_, of)| of.errors.values()).sum();
        cell(Some(errors.to_string()));
        for cpu in [|round: &Round| round.server_cpu_us, |round: &Round| round.client_cpu_us] {
            let figure = row.figure(|round, _| cpu(round)).map(|s| show_time(s.median));
            cell(if first { figure } else { Some(String::new()) });
        }
        cell(if first { resources::limit(row) } else { Some(String::new()) });
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

fn errors(out: &mut String, report: &Report) {
    if report.errors() == 0 && report.problems.is_empty() {
        return;
    }
    out.push_str("<h2 class=\"bad\">Errors</h2>\n<ul>");
    for problem in &report.problems {
        let _ = write!(out, "<li>{}</li>", escaped(problem));
    }
    for round in &report.rounds {
        for (name, count) in round.all_errors() {
            let _ = write!(
                out,
                "<li>{}, {} at once: {count} x {}</li>",
                escaped(&round.title),
                round.concurrency,
                escaped(name)
            );
        }
    }
    out.push_str("</ul>\n");
}

type Figure<'a> = &'a dyn Fn(&Row<'_>) -> Option<f64>;

/// Draws a chart of figures over the quantity that was varied: lines over the number of endpoints,
/// or over the number of requests at once. Draws bars if neither was varied.
fn swept(title: &str, show: fn(f64) -> String, rows: &[&Row<'_>], figures: &[(&str, Figure<'_>)]) -> String {
    let several =
        |of: &dyn Fn(&Row<'_>) -> usize| rows.iter().map(|row| of(row)).collect::<BTreeSet<_>>().len() > 1;
    let concurrency = |row: &Row<'_>| row.key.concurrency;
    let endpoints = |row: &Row<'_>| row.key.endpoints;
    let (x_name, x): (_, &dyn Fn(&Row<'_>) -> usize) =
        if several(&endpoints) { ("endpoints", &endpoints) } else { ("requests at once", &concurrency) };
    if !several(x) {
        let named = figures.iter().flat_map(|(name, figure)| {
            rows.iter().filter_map(move |row| Some((format!("{name}{}", row.key.title), figure(row)?)))
        });
        let named: Vec<_> = named.collect();
        return if named.is_empty() { String::new() } else { bars(title, show, &named) };
    }
    // Over the endpoints, each number of requests at once for one of them is a line of its own.
    let per_endpoint = |row: &Row<'_>| row.key.concurrency / row.key.endpoints.max(1);
    let lines_of = several(&endpoints) && several(&per_endpoint);
    let name = |row: &Row<'_>| {
        let title = row.key.title.clone();
        if lines_of { format!("{title}, {} at once for each", per_endpoint(row)) } else { title }
    };
    let names: Vec<String> = rows.iter().fold(Vec::new(), |mut names, row| {
        let name = name(row);
        if !names.contains(&name) {
            names.push(name);
        }
        names
    });
    let mut series = Vec::new();
    for (prefix, figure) in figures {
        for line in &names {
            let of = rows.iter().filter(|row| name(row) == *line);
            let mut points: Vec<(f64, f64)> =
                of.filter_map(|row| Some((float(x(row) as u64), figure(row)?))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            if !points.is_empty() {
                series.push(Series { name: format!("{prefix}{line}"), points });
            }
        }
    }
    Lines { title, x_name, x: Scale::Log, y: Scale::Linear, show, series }.svg()
}

/// Draws the distribution of latencies. If there are more rows than colours, it shows some of the
/// rows.
fn latencies(rows: &[&Row<'_>]) -> String {
    let every = rows.len().div_ceil(COLOURS).max(1);
    let chosen = rows.iter().enumerate().filter(|(index, _)| index % every == 0 || index + 1 == rows.len());
    let series = chosen.filter_map(|(_, row)| {
        let (_, last) = row.rounds.last()?;
        let latency = last.latency.as_ref()?;
        // The slowest of a thousand stands at three nines, not at the end of the world.
        let finest = 1.0 - 1.0 / float(latency.requests.max(1));
        let points = latency.distribution.iter().map(|(quantile, us)| (quantile.min(finest), *us)).collect();
        Some(Series { name: format!("{}, {} at once", row.key.title, row.key.concurrency), points })
    });
    let series: Vec<Series> = series.take(COLOURS).collect();
    if series.is_empty() {
        return String::new();
    }
    let title = match every {
        1 => "Latency by quantile".to_owned(),
        every => format!("Latency by quantile, one step of {every}"),
    };
    Lines { title: &title, x_name: "quantile", x: Scale::Nines, y: Scale::Log, show: show_time, series }.svg()
}
