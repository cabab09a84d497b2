//! Reads Prometheus' text format in the form in which a gateway writes it.

use std::collections::BTreeMap;

/// The values of metrics, by name and by labels, as they are written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples(BTreeMap<String, BTreeMap<String, f64>>);

impl Samples {
    /// Reads the metrics; `None` if the text is in another format, or not a gateway's.
    pub fn read(text: &str) -> Option<Self> {
        let mut samples = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (series, value) = line.rsplit_once(' ')?;
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let labels = labels.strip_suffix('}').unwrap_or(labels);
            samples.0.entry(name.to_owned()).or_default().insert(labels.to_owned(), value.parse().ok()?);
        }
        samples.0.contains_key("slipway_info").then_some(samples)
    }

    /// Returns the change since `before`. A counter that is smaller than before was reset: its
    /// change is its value.
    pub fn since(&self, before: &Self) -> Self {
        let mut change = self.clone();
        for (name, series) in &mut change.0 {
            for (labels, value) in series {
                let earlier =
                    before.0.get(name).and_then(|series| series.get(labels)).copied().unwrap_or(0.0);
                if *value >= earlier {
                    *value -= earlier;
                }
            }
        }
        change
    }

    /// Adds the metrics of another gateway.
    pub fn add(&mut self, other: &Self) {
        for (name, series) in &other.0 {
            let sums = self.0.entry(name.clone()).or_default();
            for (labels, value) in series {
                *sums.entry(labels.clone()).or_default() += value;
            }
        }
    }

    /// Returns the sum of all series of a metric.
    pub fn sum(&self, name: &str) -> f64 {
        self.0.get(name).map_or(0.0, |series| series.values().sum())
    }

    /// Returns the sum for each value of one label, without those that are zero.
    pub fn by(&self, name: &str, label: &str) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for (labels, value) in self.0.get(name).into_iter().flatten() {
            if let Some(found) = value_of(labels, label)
                && *value != 0.0
            {
                *sums.entry(found).or_default() += value;
            }
        }
        sums
    }

    /// Returns the sum of the series of a metric whose `label` is `wanted`.
    pub fn of(&self, name: &str, label: &str, wanted: &str) -> f64 {
        let series = self.0.get(name).into_iter().flatten();
        series
            .filter(|(labels, _)| value_of(labels, label).as_deref() == Some(wanted))
            .map(|(_, value)| value)
            .sum()
    }

    /// Returns the sum of the series of a metric that have both of these labels.
    pub fn of_both(&self, name: &str, one: (&str, &str), other: (&str, &str)) -> f64 {
        let has =
            |labels: &str, (label, wanted): (&str, &str)| value_of(labels, label).as_deref() == Some(wanted);
        let series = self.0.get(name).into_iter().flatten();
        series.filter(|(labels, _)| has(labels, one) && has(labels, other)).map(|(_, value)| value).sum()
    }

    /// Returns a quantile of the histogram's series whose `label` is `wanted`, in seconds. It is
    /// interpolated within its bucket, as Prometheus does. `None` if nothing was counted.
    pub fn quantile(&self, name: &str, label: &str, wanted: &str, quantile: f64) -> Option<f64> {
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        for (labels, count) in self.0.get(&format!("{name}_bucket"))? {
            if value_of(labels, label).as_deref() == Some(wanted) {
                let bound = value_of(labels, "le")?;
                buckets.push((if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? }, *count));
            }
        }
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        let all = buckets.last().map(|last| last.1).filter(|all| *all > 0.0)?;
        let rank = all * quantile;
        let (mut below, mut counted) = (0.0, 0.0);
        for (bound, count) in buckets {
            if count >= rank {
                let share = if count > counted { (rank - counted) / (count - counted) } else { 1.0 };
                // Of what is beyond the last bound, no more is known than that.
                return Some(if bound.is_finite() { below + (bound - below) * share } else { below });
            }
            (below, counted) = (bound, count);
        }
        None
    }
}

/// Returns the value of a label in `a="1",b="2"`.
fn value_of(labels: &str, wanted: &str) -> Option<String> {
    let mut rest = labels;
    loop {
        let (name, behind) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = behind.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        if name == wanted {
            return Some(value);
        }
        rest = behind.get(end + 1..)?.strip_prefix(',')?;
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "sums of small whole numbers are exact")]
mod tests {
    use super::*;

    const INFO: &str = "slipway_info{version=\"1\"} 1\n";

    fn read(text: &str) -> Samples {
        Samples::read(&format!("{INFO}{text}")).unwrap()
    }

    #[test]
    fn what_is_written() {
        let samples = read(
            "# HELP a b\n# TYPE a counter\na{x=\"1\",y=\"q\\\"\\\\\\n,\"} 3\na{x=\"2\",y=\"z\"} 4\nb 1.5\n",
        );
        assert_eq!((samples.sum("a"), samples.sum("b"), samples.sum("c")), (7.0, 1.5, 0.0));
        assert_eq!(samples.of("a", "y", "q\"\\\n,"), 3.0);
        assert_eq!(samples.of_both("a", ("x", "2"), ("y", "z")), 4.0);
        assert_eq!(
            samples.by("a", "x").into_iter().collect::<Vec<_>>(),
            [("1".into(), 3.0), ("2".into(), 4.0)]
        );
        for other in ["", "<html>", "a 1\n", "slipway_info{} one\n"] {
            assert_eq!(Samples::read(other), None, "{other}");
        }
    }

    #[test]
    fn changes() {
        let (before, now) =
            (read("a{x=\"1\"} 3\na{x=\"2\"} 9\n"), read("a{x=\"1\"} 5\na{x=\"2\"} 4\na{x=\"3\"} 1\n"));
        let mut change = now.since(&before);
        // The second began anew.
        assert_eq!(
            [change.of("a", "x", "1"), change.of("a", "x", "2"), change.of("a", "x", "3")],
            [2.0, 4.0, 1.0]
        );
        change.add(&now);
        assert_eq!(change.of("a", "x", "1"), 7.0);
    }

    #[test]
    fn quantiles() {
        let buckets = |counts: [u32; 4]| {
            let bounds = ["1", "2", "4", "+Inf"];
            let line = |(bound, count)| format!("t_bucket{{o=\"x\",le=\"{bound}\"}} {count}\n");
            read(&bounds.into_iter().zip(counts).map(line).collect::<String>())
        };
        let of = |counts, quantile| buckets(counts).quantile("t", "o", "x", quantile);
        assert_eq!(of([0, 0, 0, 0], 0.5), None);
        assert_eq!(of([10, 10, 10, 10], 0.5), Some(0.5));
        assert_eq!(of([0, 10, 10, 10], 0.5), Some(1.5));
        assert_eq!(of([0, 5, 10, 10], 0.75), Some(3.0));
        assert_eq!(of([0, 0, 0, 10], 0.99), Some(4.0));
        assert_eq!(buckets([1, 1, 1, 1]).quantile("t", "o", "y", 0.5), None);
    }
}
