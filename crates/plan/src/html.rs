//! Shows an outcome as one HTML page with charts.

use std::fmt::Write as _;

use charts::{Lines, Scale, Series, bars, begin_page, escaped};

use crate::model::{Bottleneck, Outcome};
use crate::object::Footprint;
use crate::show::{bottleneck_table, ceiling_table, facts, footprint_table, headroom_table, percent, size};

/// Writes the HTML page. `asked` is the command line, or another description of the load and the
/// storage, which the page shows.
pub fn html(outcome: &Outcome, asked: &str) -> String {
    let mut out = begin_page("slipway plan");
    let _ = write!(out, "<p><code>{}</code></p>\n<dl>", escaped(asked));
    for (name, value) in facts(outcome) {
        let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(&value));
    }
    let _ = writeln!(out, "<dt>CPU costs</dt><dd>{}</dd></dl>", escaped(&outcome.costs));
    if !outcome.fits {
        out.push_str("<h2 class=\"bad\">It does not fit</h2>\n");
    }
    if !outcome.notes.is_empty() {
        out.push_str("<ul>");
        for note in &outcome.notes {
            let _ = write!(out, "<li>{}</li>", escaped(note));
        }
        out.push_str("</ul>\n");
    }
    out.push_str("<h2>An object</h2>\n");
    out.push_str(&footprint_table(outcome).html());
    out.push_str("<h2>The highest rate of each operation</h2>\n");
    out.push_str(&ceiling_table(&outcome.ceilings).html());
    out.push_str(&headroom_table(&outcome.ceilings).html());
    if !outcome.bottlenecks.is_empty() {
        out.push_str("<h2>This load</h2>\n");
        out.push_str(&bottleneck_table(&outcome.bottlenecks).html());
    }
    out.push_str("<h2>What limits the rates</h2>\n<div class=\"charts\">");
    let used = |of: &[Bottleneck]| of.iter().map(|one| (one.name.to_owned(), one.used)).collect::<Vec<_>>();
    if !outcome.bottlenecks.is_empty() {
        out.push_str(&bars("Used by this load", percent, &used(&outcome.bottlenecks)));
    }
    for ceiling in &outcome.ceilings {
        let title = format!("Used by {} alone, at its highest rate", ceiling.operation.name());
        out.push_str(&bars(&title, percent, &used(&ceiling.bottlenecks)));
    }
    let of = |one: &Footprint| (size(one.bytes), one.bytes_on_volumes);
    let footprints: Vec<(String, f64)> = outcome.footprints.iter().map(of).collect();
    out.push_str(&bars("Bytes on volumes for an object of", size, &footprints));
    let points = outcome.fill.by_year.clone();
    if points.len() > 1 && outcome.fill.tib > 0.0 {
        let series = vec![Series { name: "share of the raw space".to_owned(), points }];
        let (x, y) = (Scale::Linear, Scale::Linear);
        out.push_str(&Lines { title: "Filled", x_name: "years", x, y, show: percent, series }.svg());
    }
    out.push_str("</div>\n</body></html>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalogue, Costs, Durability, Load, Local, SizeShare, Spread, Storage};

    #[test]
    fn a_page_has_all_and_nothing_gets_out_of_its_place() {
        let catalogue = Catalogue::built_in().unwrap();
        let storage = Storage {
            nodes: 6,
            node: catalogue.node("m5dn.12xlarge").unwrap().clone(),
            volumes: 6,
            volume: catalogue.volume("gp3").unwrap().volume("gp3", 1.0, None, None).unwrap(),
            local: Local::None,
            spread: Spread::Strips { data: 4, parity: 2 },
            gateways: None,
        };
        let load = Load {
            objects: 1e9,
            sizes: vec![SizeShare { bytes: 4096.0, share: 1.0 }],
            heads: 0.0,
            gets: 1e6,
            puts: 1.0,
            clients: 1.0,
            growth: 0.5,
            years: 2.5,
            durability: Durability::Full,
            from_memory: 0.0,
        };
        let costs = Costs { source: "<here>".to_owned(), ..Costs::built_in().unwrap() };
        let outcome = crate::plan(&load, &storage, &costs).unwrap();
        let page = html(&outcome, "<script>");
        assert!(!page.contains("<script>") && !page.contains("<here>"));
        assert!(!page.contains("NaN") && page.contains("It does not fit"));
        assert_eq!(page.matches("<svg").count(), 6);
        assert!(page.ends_with("</html>\n"));
        let years: Vec<f64> = outcome.fill.by_year.iter().map(|(year, _)| *year).collect();
        assert_eq!(years, [0.0, 1.0, 2.0, 2.5]);
    }
}
