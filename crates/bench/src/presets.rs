//! Loads that published studies of S3 servers used, so that their figures can be compared with
//! one's own.

use crate::plan::{Step, Test};
use crate::units::{Mix, float, whole};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// The size of the parts of large objects, and of ranges of them, in bytes.
const PART: u64 = 64 * MIB;
/// The sizes of small objects, in bytes.
const SMALL: [u64; 4] = [KIB, 4 * KIB, 16 * KIB, 128 * KIB];

/// A preset: a load with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name of the preset.
    pub name: &'static str,
    /// A sentence about what the preset measures.
    pub about: &'static str,
}

/// All presets.
pub const PRESETS: [Preset; 12] = [
    Preset { name: "put-1m", about: "PutObject of 1 MiB with 100 to 350 at once" },
    Preset {
        name: "multipart-10g",
        about: "one object of 10 GiB (--scale) in parts of 64 MiB, 1 to 100 at once, once each",
    },
    Preset { name: "head", about: "HeadObject with 1 to 20 at once" },
    Preset {
        name: "ranged-10g",
        about: "GetObject of 10 GiB (--scale) in ranges of 64 MiB, 1 to 16 at once",
    },
    Preset { name: "small", about: "PutObject and GetObject of 1, 4, 16 and 128 KiB with 64 at once" },
    Preset {
        name: "gateways",
        about: "PutObject and GetObject of 1 MiB and HeadObject over one endpoint, two, up to all that are given, 32 at once for each",
    },
    Preset {
        name: "bursts",
        about: "100 to 350 objects of 1 MiB, all at once: put, then read, then deleted, each once",
    },
    Preset { name: "query", about: "HeadObject with as many at once as are fastest" },
    Preset {
        name: "gateways-put-10g",
        about: "one object of 10 GiB (--scale) in parts of 64 MiB over one endpoint, two, up to all, 2 to 32 parts at once for each, once each",
    },
    Preset {
        name: "gateways-get-10g",
        about: "GetObject of 10 GiB (--scale) in ranges of 64 MiB over one endpoint, two, up to all, 1 to 16 at once for each",
    },
    Preset {
        name: "churn",
        about: "objects of 1, 4, 16 and 128 KiB that are written, read once and deleted, 64 at once",
    },
    Preset {
        name: "streams",
        about: "12 readers, each of an object of 30 GiB (--scale), in ranges of 128 and of 512 KiB",
    },
];

/// Returns the steps of a preset for this many endpoints; `None` if there is no such preset.
/// `scale` is the factor by which the sizes of large objects are multiplied. `concurrency` replaces
/// the preset's own numbers of requests at once.
pub fn steps(name: &str, endpoints: usize, scale: f64, concurrency: Option<&[usize]>) -> Option<Vec<Step>> {
    let of = Asked { endpoints, scale, concurrency };
    Some(match name {
        "put-1m" => of.swept(&[100, 150, 200, 250, 300, 350], &|c| step(Test::Put, MIB, c, endpoints)),
        "multipart-10g" => {
            let all =
                of.swept(&[1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100], &|c| of.multipart(c, endpoints));
            of.with_parts_enough(all)
        }
        "head" => of.swept(&[1, 5, 10, 15, 20], &|c| step(Test::Head, 4 * KIB, c, endpoints)),
        "ranged-10g" => of.swept(&[1, 2, 4, 8, 16], &|c| of.ranged(c, endpoints)),
        "small" => {
            let both = SMALL.iter().flat_map(|size| [(Test::Put, *size), (Test::Get, *size)]);
            both.flat_map(|(test, size)| of.swept(&[64], &|c| step(test, size, c, endpoints))).collect()
        }
        "gateways" => {
            let tests = [(Test::Put, MIB), (Test::Get, MIB), (Test::Head, 4 * KIB)];
            let over = |(test, size)| of.over_endpoints(&[32], &move |c, n| step(test, size, c, n));
            tests.into_iter().flat_map(over).collect()
        }
        "bursts" => of.swept(&[100, 150, 200, 250, 300, 350], &|c| step(Test::Burst, MIB, c, endpoints)),
        "query" => of.swept(&[1], &|c| {
            let fastest = concurrency.is_none();
            Step { fastest, ..step(Test::Head, 4 * KIB, c, endpoints) }
        }),
        "gateways-put-10g" => {
            of.with_parts_enough(of.over_endpoints(&[2, 4, 8, 16, 32], &|c, n| of.multipart(c, n)))
        }
        "gateways-get-10g" => of.over_endpoints(&[1, 2, 4, 8, 16], &|c, n| of.ranged(c, n)),
        "churn" => {
            let one = |size: &u64| of.swept(&[64], &|c| step(Test::Churn, *size, c, endpoints));
            SMALL.iter().flat_map(one).collect()
        }
        "streams" => {
            let size = of.scaled(30 * GIB, MIB);
            let one = |range| {
                of.swept(&[12], &|c| Step { range: Some(range), ..step(Test::Streams, size, c, endpoints) })
            };
            [128 * KIB, 512 * KIB].into_iter().flat_map(one).collect()
        }
        _ => return None,
    })
}

fn step(test: Test, size: u64, concurrency: usize, endpoints: usize) -> Step {
    Step {
        test,
        size,
        range: None,
        part_size: PART,
        mix: Mix::default(),
        page: 1000,
        concurrency,
        fastest: false,
        endpoints,
        most: None,
    }
}

/// The options with which a preset was requested.
struct Asked<'a> {
    endpoints: usize,
    scale: f64,
    concurrency: Option<&'a [usize]>,
}

impl Asked<'_> {
    /// Returns the size multiplied by the scale, and rounded to a number of whole parts.
    fn scaled(&self, size: u64, part: u64) -> u64 {
        whole(float(size / part) * self.scale).max(1) * part
    }

    /// Makes one step for each number of requests at once.
    fn swept(&self, own: &[usize], one: &dyn Fn(usize) -> Step) -> Vec<Step> {
        self.concurrency.unwrap_or(own).iter().map(|at_once| one(*at_once)).collect()
    }

    /// Makes steps for one endpoint, for two, up to all of them, with each of these numbers of
    /// requests at once per endpoint.
    fn over_endpoints(&self, own: &[usize], one: &dyn Fn(usize, usize) -> Step) -> Vec<Step> {
        (1..=self.endpoints).flat_map(|n| self.swept(own, &|c| one(c * n, n))).collect()
    }

    fn multipart(&self, concurrency: usize, endpoints: usize) -> Step {
        let size = self.scaled(10 * GIB, PART);
        Step { most: Some(1), ..step(Test::Multipart, size, concurrency, endpoints) }
    }

    fn ranged(&self, concurrency: usize, endpoints: usize) -> Step {
        let size = self.scaled(10 * GIB, PART);
        Step { range: Some(PART), ..step(Test::Get, size, concurrency, endpoints) }
    }

    /// Drops steps with more parts at once than an object has after scaling, unless the user gave
    /// the numbers. Steps with up to two parts at once per endpoint are not dropped.
    fn with_parts_enough(&self, mut steps: Vec<Step>) -> Vec<Step> {
        let enough = |step: &Step| (step.size / PART).max(2 * step.endpoints as u64);
        steps.retain(|step| self.concurrency.is_some() || step.concurrency as u64 <= enough(step));
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_presets_have_steps() {
        for preset in PRESETS {
            assert!(!steps(preset.name, 3, 0.0001, None).unwrap().is_empty(), "{}", preset.name);
            let found = steps(preset.name, 3, 0.1, None).unwrap();
            assert!(!found.is_empty() && found.iter().all(|step| step.endpoints <= 3), "{}", preset.name);
        }
        assert_eq!(steps("other", 1, 1.0, None), None);
    }

    #[test]
    fn scale_and_sweep_can_be_changed() {
        let scaled = steps("multipart-10g", 1, 0.1, Some(&[7])).unwrap();
        assert_eq!((scaled.len(), scaled[0].size, scaled[0].concurrency), (1, GIB, 7));
        assert_eq!(steps("ranged-10g", 1, 1.0, None).unwrap()[0].size, 10 * GIB);
        assert_eq!(steps("ranged-10g", 1, 0.0001, None).unwrap()[0].size, 64 * MIB);
        let over: Vec<usize> =
            steps("gateways", 2, 1.0, None).unwrap().iter().map(|s| s.concurrency).collect();
        assert_eq!(over, [32, 64, 32, 64, 32, 64]);
        let over = steps("gateways-put-10g", 2, 0.1, Some(&[2, 4])).unwrap();
        let over: Vec<(usize, usize, u64)> =
            over.iter().map(|step| (step.endpoints, step.concurrency, step.size)).collect();
        assert_eq!(over, [(1, 2, GIB), (1, 4, GIB), (2, 4, GIB), (2, 8, GIB)]);
        let streams = steps("streams", 1, 0.1, None).unwrap();
        let streams: Vec<(u64, Option<u64>, usize)> =
            streams.iter().map(|step| (step.size, step.range, step.concurrency)).collect();
        assert_eq!(streams, [(3 * GIB, Some(128 * KIB), 12), (3 * GIB, Some(512 * KIB), 12)]);
    }
}
