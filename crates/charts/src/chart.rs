//! Draws charts as SVG, with the colours and fonts of the page.

use std::fmt::Write as _;

use crate::text::escaped;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 15.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 42.0;
/// The number of colours in which series are drawn.
pub const COLOURS: usize = 8;

/// A series of points, which a line joins.
#[derive(Debug, Clone)]
pub struct Series {
    /// The name of the series, for the legend.
    pub name: String,
    /// The points, as x and y, in the order in which the line joins them.
    pub points: Vec<(f64, f64)>,
}

/// The mapping of values to positions on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// A linear scale, whose axis begins at 0.
    Linear,
    /// A logarithmic scale, to the base 10.
    Log,
    /// A logarithmic scale for quantiles, which shows the distance from 1: 0.9, 0.99 and 0.999 are
    /// at equal distances.
    Nines,
}

/// A chart of lines, which shows values over a quantity that is varied.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    /// The title of the chart.
    pub title: &'a str,
    /// The name of the quantity that is varied.
    pub x_name: &'a str,
    /// The scale of the quantity that is varied.
    pub x: Scale,
    /// The scale of the values.
    pub y: Scale,
    /// The function that writes a value as text.
    pub show: fn(f64) -> String,
    /// The lines.
    pub series: Vec<Series>,
}

impl Scale {
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(1e-9).log10(),
            // The largest quantile, 1, would be at infinity: it is placed at seven nines.
            Self::Nines => -(1.0 - value).max(1e-7).log10(),
        }
    }

    /// Returns the values to write beside an axis that shows the range from `least` to `most`.
    fn ticks(self, least: f64, most: f64) -> Vec<f64> {
        match self {
            Self::Linear => {
                let step = round_step((most - least) / 5.0);
                (0..=20_i32)
                    .map(|n| least + f64::from(n) * step)
                    .take_while(|v| *v <= most * 1.0001)
                    .collect()
            }
            Self::Log => {
                let decades = (-3_i32..=12).map(|power| 10_f64.powi(power));
                let all = decades.flat_map(|decade| [decade, decade * 2.0, decade * 5.0]);
                let inside: Vec<f64> = all.filter(|v| *v >= least * 0.999 && *v <= most * 1.001).collect();
                let powers = |v: &f64| (v.log10() - v.log10().round()).abs() < 1e-9;
                if inside.len() > 8 { inside.into_iter().filter(powers).collect() } else { inside }
            }
            Self::Nines => {
                [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999].into_iter().filter(|v| *v <= most).collect()
            }
        }
    }
}

/// Returns the smallest number of the form 1, 2 or 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.max(1e-9).log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= step * 0.999);
    factor.unwrap_or(10.0) * power
}

/// An axis: its range of values, and its position in the drawing.
struct Axis {
    scale: Scale,
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(scale: Scale, values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let least = match scale {
            Scale::Linear | Scale::Nines => 0.0,
            Scale::Log => values.clone().filter(|v| *v > 0.0).reduce(f64::min).unwrap_or(1.0),
        };
        let most = values.reduce(f64::max).unwrap_or(1.0);
        Self { scale, least, most: if most > least { most } else { least + 1.0 }, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let place = |v| self.scale.place(v);
        let share = (place(value) - place(self.least)) / (place(self.most) - place(self.least));
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }
}

impl Lines<'_> {
    /// Draws the chart, in a figure with its title and legend.
    pub fn svg(&self) -> String {
        let points = self.series.iter().flat_map(|series| series.points.iter().copied());
        let x = Axis::new(self.x, points.clone().map(|(x, _)| x), LEFT, WIDTH - RIGHT);
        let y = Axis::new(self.y, points.map(|(_, y)| y), HEIGHT - BOTTOM, TOP);
        let mut out = begin(self.title, HEIGHT);
        for tick in self.y.ticks(y.least, y.most) {
            let at = y.at(tick);
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                at + 4.0,
                escaped(&(self.show)(tick))
            );
        }
        for (place, text) in self.x_ticks(&x) {
            let _ = write!(
                out,
                "<text x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                HEIGHT - BOTTOM + 18.0,
                escaped(&text)
            );
        }
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            HEIGHT - 6.0,
            escaped(self.x_name)
        );
        for (index, series) in self.series.iter().enumerate() {
            let colour = index % COLOURS;
            let line: Vec<String> =
                series.points.iter().map(|(px, py)| format!("{:.1},{:.1}", x.at(*px), y.at(*py))).collect();
            let _ = write!(out, "<polyline class=\"c{colour}\" points=\"{}\"/>", line.join(" "));
            for (px, py) in &series.points {
                let what = format!("{}: {} at {}", series.name, (self.show)(*py), self.x_text(*px));
                let _ = write!(
                    out,
                    "<circle class=\"c{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{}</title></circle>",
                    x.at(*px),
                    y.at(*py),
                    escaped(&what)
                );
            }
        }
        out.push_str("</svg>");
        out.push_str(&legend(self.series.iter().map(|series| series.name.as_str())));
        out.push_str("</figure>\n");
        out
    }

    fn x_ticks(&self, axis: &Axis) -> Vec<(f64, String)> {
        let mut ticks: Vec<f64> = if self.x == Scale::Nines {
            self.x.ticks(axis.least, axis.most)
        } else {
            // The values that were measured are more useful than round numbers.
            let points = self.series.iter().flat_map(|series| &series.points);
            let mut measured: Vec<f64> = points.map(|(x, _)| *x).collect();
            measured.sort_by(f64::total_cmp);
            measured.dedup();
            measured
        };
        let mut last = f64::NEG_INFINITY;
        ticks.retain(|tick| {
            let far = axis.at(*tick) - last > 30.0;
            if far {
                last = axis.at(*tick);
            }
            far
        });
        ticks.into_iter().map(|tick| (axis.at(tick), self.x_text(tick))).collect()
    }

    fn x_text(&self, x: f64) -> String {
        match self.x {
            Scale::Nines => {
                let percent = format!("{:.4}", x * 100.0);
                format!("{}%", percent.trim_end_matches('0').trim_end_matches('.'))
            }
            _ => format!("{x}"),
        }
    }
}

/// Draws a chart with a bar for each pair of a name and a value. `show` writes a value as text.
pub fn bars(title: &str, show: fn(f64) -> String, bars: &[(String, f64)]) -> String {
    const ROW: f64 = 26.0;
    const NAMES: f64 = 270.0;
    let most = bars.iter().map(|(_, value)| *value).reduce(f64::max).unwrap_or(1.0).max(1e-9);
    let rows = bars.iter().fold(0.0, |rows, _| rows + 1.0);
    let mut out = begin(title, rows * ROW + 8.0);
    for (index, (name, value)) in (0_u32..).zip(bars) {
        let top = f64::from(index) * ROW + 4.0;
        let width = (value / most * (WIDTH - NAMES - 90.0)).max(1.0);
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect class=\"c0\" x=\"{NAMES}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            NAMES - 8.0,
            top + 15.0,
            escaped(name),
            ROW - 6.0,
            NAMES + width + 6.0,
            top + 15.0,
            escaped(&show(*value))
        );
    }
    out.push_str("</svg></figure>\n");
    out
}

fn begin(title: &str, height: f64) -> String {
    let title = escaped(title);
    format!(
        "<figure><figcaption>{title}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">"
    )
}

fn legend<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut out = String::from("<ul class=\"legend\">");
    for (index, name) in names.enumerate() {
        let _ = write!(out, "<li><i class=\"c{}\"></i>{}</li>", index % COLOURS, escaped(name));
    }
    out.push_str("</ul>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(points: Vec<(f64, f64)>) -> Lines<'static> {
        Lines {
            title: "a <b> & \"c\"",
            x_name: "<x>",
            x: Scale::Log,
            y: Scale::Linear,
            show: |v| format!("{v:.0}<"),
            series: vec![Series { name: "<script>".to_owned(), points }],
        }
    }

    #[test]
    fn text_is_escaped() {
        let svg = lines(vec![(1.0, 5.0), (10.0, 50.0)]).svg();
        for raw in ["<script>", "<b>", "<x>", "\"c\"", "50<"] {
            assert!(!svg.contains(raw), "{raw}");
        }
        assert!(svg.contains("&lt;script&gt;") && svg.contains("a &lt;b&gt; &amp; &quot;c&quot;"));
        assert!(bars("<t>", |v| v.to_string(), &[("<n>".to_owned(), 1.0)]).contains("&lt;n&gt;"));
    }

    #[test]
    fn odd_values_have_a_place() {
        for points in [vec![], vec![(1.0, 0.0)], vec![(0.0, 0.0), (5.0, 1e12)], vec![(2.0, 3.0), (2.0, 3.0)]]
        {
            for scale in [Scale::Linear, Scale::Log, Scale::Nines] {
                let svg = Lines { x: scale, y: Scale::Log, ..lines(points.clone()) }.svg();
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{points:?}: {svg}");
            }
        }
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(Scale::Linear.ticks(0.0, 100.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(Scale::Log.ticks(1.0, 10.0), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(Scale::Log.ticks(1.0, 100_000.0).len(), 6);
        assert_eq!(Scale::Nines.ticks(0.0, 0.995), [0.0, 0.5, 0.9, 0.99]);
    }
}
