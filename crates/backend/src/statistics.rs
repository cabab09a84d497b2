/// Figures that a storage reports about itself.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// The caches in memory.
    pub caches: Vec<CacheStatistics>,
    /// The volumes on which the storage keeps objects.
    pub volumes: Vec<VolumeStatistics>,
    /// The names of volumes that did not report their space: they hang, or fail.
    pub silent_volumes: Vec<String>,
    /// The number of times that a listing could not read what the storage knows of an object, or a
    /// part of the bucket.
    pub unread: u64,
}

/// The figures of a cache since the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct CacheStatistics {
    /// The name of the cache.
    pub name: &'static str,
    /// The number of look-ups that the cache could answer.
    pub hits: u64,
    /// The number of look-ups that the cache could not answer.
    pub misses: u64,
    /// The number of bytes that the cache holds.
    pub bytes: u64,
    /// The number of bytes that the cache may hold.
    pub bytes_max: u64,
}

/// The space of a volume.
#[derive(Debug, Clone, Default)]
pub struct VolumeStatistics {
    /// The place of the volume in the storage: `.` for the whole storage, or the name of a bucket
    /// that has a volume of its own.
    pub name: String,
    /// The size of the volume, in bytes.
    pub bytes: u64,
    /// The number of bytes that may still be written.
    pub bytes_free: u64,
    /// The number of files that the volume can hold; 0 if there is no such limit.
    pub files: u64,
    /// The number of files that the volume can still take.
    pub files_free: u64,
    /// True if nothing can be written to the volume: it is mounted read-only, or its file system
    /// failed.
    pub read_only: bool,
}
