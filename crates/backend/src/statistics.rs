/// Figures that a storage reports about itself.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// Its caches in memory.
    pub caches: Vec<CacheStatistics>,
    /// The volumes on which it keeps objects.
    pub volumes: Vec<VolumeStatistics>,
    /// The names of volumes that did not report their space: they hang, or fail.
    pub silent_volumes: Vec<String>,
}

/// The figures of a cache since the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct CacheStatistics {
    /// The cache's name.
    pub name: &'static str,
    /// Look-ups that it could answer.
    pub hits: u64,
    /// Look-ups that it could not answer.
    pub misses: u64,
    /// Bytes that it holds.
    pub bytes: u64,
    /// Bytes that it may hold.
    pub bytes_max: u64,
}

/// The space of a volume.
#[derive(Debug, Clone, Default)]
pub struct VolumeStatistics {
    /// Its place in the storage: `.` for the whole storage, or the bucket that has a volume of its
    /// own.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Bytes that may still be written.
    pub bytes_free: u64,
    /// Files that it can hold; 0 if there is no such limit.
    pub files: u64,
    /// Files that it can still take.
    pub files_free: u64,
    /// True if nothing can be written there: it is mounted read-only, or its file system failed.
    pub read_only: bool,
}
