/// What a sweep removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Writes that were never published, with what they had left.
    pub staging: usize,
    /// Receipts of completed uploads, and completions that a crash had interrupted.
    pub completed: usize,
    /// Uploads that were abandoned, or half removed, or whose bucket is gone.
    pub uploads: usize,
    /// What could not be swept. Each is told in the log.
    pub unswept: usize,
}
