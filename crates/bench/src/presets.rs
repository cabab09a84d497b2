//! Loads that published studies of S3 servers used, so that their figures can be set beside one's
//! own.

use crate::plan::{Step, Test};
use crate::units::{Mix, float, whole};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A load by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
}

/// All of them.
pub const PRESETS: [Preset; 6] = [
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
];

/// The steps of a preset, for so many endpoints; large objects are made smaller by `scale`.
/// `concurrency` replaces the preset's own.
pub fn steps(name: &str, endpoints: usize, scale: f64, concurrency: Option<&[usize]>) -> Option<Vec<Step>> {
    let large = |part: u64| {
        let parts = whole(float(10 * GIB / part) * scale).max(1);
        parts * part
    };
    let step = |test, size, concurrency, endpoints| Step {
        test,
        size,
        range: None,
        part_size: 64 * MIB,
        mix: Mix::default(),
        page: 1000,
        concurrency,
        endpoints,
        most: None,
    };
    let swept = |own: &[usize], one: &dyn Fn(usize) -> Step| {
        concurrency.unwrap_or(own).iter().map(|at_once| one(*at_once)).collect::<Vec<Step>>()
    };
    Some(match name {
        "put-1m" => swept(&[100, 150, 200, 250, 300, 350], &|c| step(Test::Put, MIB, c, endpoints)),
        "multipart-10g" => {
            let size = large(64 * MIB);
            let mut steps = swept(&[1, 2, 4, 8, 16, 32, 64, 100], &|c| Step {
                most: Some(1),
                ..step(Test::Multipart, size, c, endpoints)
            });
            // Where it was made smaller, no more parts at once than there are.
            let parts = size / (64 * MIB);
            steps.retain(|step| step.concurrency as u64 <= parts || concurrency.is_some());
            steps
        }
        "head" => swept(&[1, 2, 4, 8, 12, 16, 20], &|c| step(Test::Head, 4 * KIB, c, endpoints)),
        "ranged-10g" => swept(&[1, 2, 4, 8, 16], &|c| Step {
            range: Some(64 * MIB),
            ..step(Test::Get, large(64 * MIB), c, endpoints)
        }),
        "small" => {
            let sizes = [KIB, 4 * KIB, 16 * KIB, 128 * KIB];
            let both = sizes.iter().flat_map(|size| [(Test::Put, *size), (Test::Get, *size)]);
            both.flat_map(|(test, size)| swept(&[64], &|c| step(test, size, c, endpoints))).collect()
        }
        "gateways" => {
            let tests = [(Test::Put, MIB), (Test::Get, MIB), (Test::Head, 4 * KIB)];
            let all = tests.into_iter().flat_map(|test| (1..=endpoints).map(move |n| (test, n)));
            all.flat_map(|((test, size), n)| swept(&[32], &|c| step(test, size, c * n, n))).collect()
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_presets_have_steps() {
        for preset in PRESETS {
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
    }
}
