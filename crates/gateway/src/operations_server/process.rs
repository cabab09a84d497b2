//! The kernel's figures for this process. Those that can't be read are left out.

use std::time::Duration;

use procfs::process::Process;

use super::page::Page;
use crate::descriptors::Descriptors;
use crate::metrics::table;

/// Writes the figures.
pub(super) fn write(page: &mut Page, descriptors: Option<Descriptors>) {
    if let Some(Descriptors { used, allowed }) = descriptors {
        page.family(&table::DESCRIPTORS).sample([], used);
        if let Some(allowed) = allowed {
            page.family(&table::DESCRIPTORS_MAX).sample([], allowed);
        }
    }
    let Ok(process) = Process::myself() else { return };
    if let Ok(stat) = process.stat() {
        page.family(&table::CPU).sample([], of_ticks(stat.utime + stat.stime).as_secs_f64());
        page.family(&table::MEMORY).sample([], stat.rss * procfs::page_size());
        page.family(&table::VIRTUAL_MEMORY).sample([], stat.vsize);
        page.family(&table::THREADS).sample([], stat.num_threads);
        if let Ok(boot) = procfs::boot_time_secs() {
            let started = Duration::from_secs(boot) + of_ticks(stat.starttime);
            page.family(&table::START).sample([], started.as_secs_f64());
        }
    }
}

/// Converts a time in /proc, which is in ticks of the kernel's clock.
fn of_ticks(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(1000) / procfs::ticks_per_second().max(1))
}
