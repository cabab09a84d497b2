//! Draws pages with charts: the beginning of an HTML page, and charts as SVG. A page has no
//! scripts, and refers to nothing outside it.

#![forbid(unsafe_code)]

mod chart;
mod text;

use std::fmt::Write as _;

pub use chart::{COLOURS, Lines, Scale, Series, bars};
pub use text::escaped;

const STYLE: &str = "\
:root{color-scheme:light dark;--fg:#1c2733;--bg:#fff;--dim:#5c6b7a;--grid:#d9e0e7;\
--c0:#0b62c4;--c1:#c2410c;--c2:#15803d;--c3:#7e22ce;--c4:#a16207;--c5:#0e7490;--c6:#be185d;--c7:#475569}\
@media(prefers-color-scheme:dark){:root{--fg:#e6ebf0;--bg:#12181f;--dim:#93a1af;--grid:#2b3642;\
--c0:#5aa9ff;--c1:#ff9a5a;--c2:#5fd38a;--c3:#c69bff;--c4:#e8c24a;--c5:#4fd1e6;--c6:#ff8bc0;--c7:#a9b6c3}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:1340px;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem}\
dt{color:var(--dim)}dd{margin:0}table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}\
.wide{overflow-x:auto}th,td{padding:.15rem .45rem;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}\
th:first-child,td:first-child,th:nth-child(2),td:nth-child(2){text-align:left}th{color:var(--dim);font-weight:600}\
.charts{display:flex;flex-wrap:wrap;gap:1rem 2rem}figure{margin:0;flex:1 1 480px;max-width:640px}figcaption{font-weight:600}\
svg{width:100%;height:auto;display:block}svg text{fill:var(--dim);font-size:12px}.grid{stroke:var(--grid)}\
polyline{fill:none;stroke-width:2}.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.1rem 1rem;padding:0;margin:.2rem 0;font-size:13px}\
.legend i{display:inline-block;width:.8em;height:.8em;margin-right:.4em;border-radius:2px}.bad{color:var(--c1);font-weight:600}";

/// Writes the beginning of an HTML page, with its heading. The caller adds the end,
/// `</body></html>`.
pub fn begin_page(title: &str) -> String {
    let title = escaped(title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title><style>{STYLE}"
    );
    for colour in 0..COLOURS {
        let _ = write!(
            out,
            "polyline.c{colour}{{stroke:var(--c{colour})}}circle.c{colour},rect.c{colour}{{fill:var(--c{colour})}}i.c{colour}{{background:var(--c{colour})}}"
        );
    }
    let _ = write!(out, "</style></head><body>\n<h1>{title}</h1>\n");
    out
}
