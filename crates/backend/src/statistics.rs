/// What a storage tells of itself.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// What it keeps in memory.
    pub caches: Vec<CacheStatistics>,
    /// Where it keeps objects.
    pub volumes: Vec<VolumeStatistics>,
    /// The names of volumes that did not tell of their room: they hang, or fail.
    pub silent_volumes: Vec<String>,
}

/// What a cache was asked for since the start, and holds.
#[derive(Debug, Clone, Copy, Default)]
pub struct CacheStatistics {
    /// Which.
    pub name: &'static str,
    /// What it had.
    pub hits: u64,
    /// What it did not have.
    pub misses: u64,
    /// What it holds.
    pub bytes: u64,
    /// What it may hold.
    pub bytes_max: u64,
}

/// The room of a volume.
#[derive(Debug, Clone, Default)]
pub struct VolumeStatistics {
    /// Where it is, in the storage: `.` for all of it, or the bucket that is a volume of its own.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What may still be written.
    pub bytes_free: u64,
    /// Files that it can hold; 0 where there is no such limit.
    pub files: u64,
    /// How many more it can hold.
    pub files_free: u64,
    /// Nothing can be written there: it is mounted so, or its file system failed.
    pub read_only: bool,
}
