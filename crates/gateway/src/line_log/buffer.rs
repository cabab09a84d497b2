use s3_types::Timestamp;
use s3_wire::time::IsoMicros;

use crate::limits::ACCESS_LOG_WAKE_BYTES;

/// The room that buffers keep between rounds. Mostly what wakes the log's thread is a little more
/// than [`ACCESS_LOG_WAKE_BYTES`].
pub const ROOM: usize = 2 * ACCESS_LOG_WAKE_BYTES;

/// Lines of one group of threads that are not yet in the file.
#[derive(Debug, Default)]
pub struct Buffer {
    pub bytes: Vec<u8>,
    /// The number of lines.
    pub lines: u64,
    /// The second of the last time that was formatted, and its text.
    second: Option<(i64, IsoMicros)>,
}

impl Buffer {
    /// A buffer with the room that it keeps between rounds. To grow to it would copy lines that
    /// were written before; the kernel gives the memory only as it is written to.
    pub fn new() -> Self {
        Self { bytes: Vec::with_capacity(ROOM), ..Self::default() }
    }

    /// Returns the bytes and the number of lines, and empties the buffer, which continues with the
    /// memory of `room`.
    pub const fn take(&mut self, room: Vec<u8>) -> (Vec<u8>, u64) {
        (std::mem::replace(&mut self.bytes, room), std::mem::replace(&mut self.lines, 0))
    }

    /// Returns the time as text. Within the same second, only the fraction is formatted anew.
    pub fn time(&mut self, time: Timestamp) -> IsoMicros {
        let second = time.as_second();
        match &mut self.second {
            Some((last, text)) if *last == second => {
                text.set_fraction(time);
                *text
            }
            last => last.insert((second, IsoMicros::new(time))).1,
        }
    }
}
