//! Finds the number of processors that a process may use.

use std::fs;
use std::path::{Path, PathBuf};

use crate::units::float;

/// The directories of the control groups of version 2, alone or beside those of version 1.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Returns the number of processors that a process may use at once, by its CPU mask and the quota
/// of its control groups. Returns 0 if there is no such process.
pub(crate) fn usable_by(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let masked = float(mask.map_or(0, |list| count_list(list.trim())));
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    quota(&groups).map_or(masked, |quota| quota.min(masked))
}

/// Returns how many numbers a list such as `0-3,8` stands for.
fn count_list(text: &str) -> u64 {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.checked_sub(first)? + 1)
    };
    text.split(',').filter_map(count).sum()
}

/// Returns the smallest quota, in processors, of the groups in the text of /proc/PID/cgroup and of
/// the groups above them.
fn quota(groups: &str) -> Option<f64> {
    let quotas = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let bases: Vec<PathBuf> = match controllers {
            "" => UNIFIED.iter().map(PathBuf::from).collect(),
            names if names.split(',').any(|name| name == "cpu") => {
                vec![Path::new("/sys/fs/cgroup").join(names), PathBuf::from("/sys/fs/cgroup/cpu")]
            }
            _ => return None,
        };
        bases.iter().filter_map(|base| least_quota(base, path)).reduce(f64::min)
    });
    quotas.reduce(f64::min)
}

/// Returns the smallest quota, in processors, of a group and of the groups above it.
fn least_quota(base: &Path, path: &str) -> Option<f64> {
    let group = base.join(path.trim_start_matches('/'));
    let quotas = group.ancestors().take_while(|group| group.starts_with(base)).filter_map(quota_of);
    quotas.reduce(f64::min)
}

fn quota_of(group: &Path) -> Option<f64> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    match read("cpu.max") {
        Some(text) => parse_quota(&text),
        None => parse_quota(&format!("{} {}", read("cpu.cfs_quota_us")?.trim(), read("cpu.cfs_period_us")?)),
    }
}

/// Reads the text `quota period` as a number of processors; `None` if there is no quota: `max`, or
/// a negative number.
fn parse_quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.trim().parse().ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_quotas() {
        for (list, count) in [("0", 1), ("0-3", 4), ("0-1,4,6-7", 5), ("", 0), ("3-1", 0)] {
            assert_eq!(count_list(list), count, "{list}");
        }
        assert_eq!(parse_quota("150000 100000\n"), Some(1.5));
        for none in ["max 100000\n", "-1 100000", "", "x y"] {
            assert_eq!(parse_quota(none), None, "{none}");
        }
    }

    #[test]
    fn a_quota_is_that_of_the_tightest_group() {
        let base = std::env::temp_dir().join(format!("bench-quota-{}", std::process::id()));
        let group = base.join("a/b");
        fs::create_dir_all(&group).unwrap();
        fs::write(base.join("a/cpu.max"), "50000 100000\n").unwrap();
        fs::write(group.join("cpu.max"), "max 100000\n").unwrap();
        assert_eq!(least_quota(&base, "/a/b"), Some(0.5));
        fs::write(group.join("cpu.max"), "25000 100000\n").unwrap();
        assert_eq!(least_quota(&base, "/a/b"), Some(0.25));
        assert_eq!(least_quota(&base, "/"), None);
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn this_process_may_use_some() {
        let found = usable_by(std::process::id());
        assert!(found > 0.0 && found <= 8192.0, "{found}");
        assert!(usable_by(u32::MAX).abs() < 1e-9);
    }
}
