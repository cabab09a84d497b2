use s3_types::Timestamp;
use s3_wire::time::IsoMicros;

/// Lines of one group of threads, that are not in the file yet.
#[derive(Debug, Default)]
pub struct Buffer {
    pub bytes: Vec<u8>,
    /// So many.
    pub lines: u64,
    /// The second that was written last, and how it is written.
    second: Option<(i64, IsoMicros)>,
}

impl Buffer {
    /// What is in it, and how many lines that are. It goes on with `room`, which is empty.
    pub const fn take(&mut self, room: Vec<u8>) -> (Vec<u8>, u64) {
        (std::mem::replace(&mut self.bytes, room), std::mem::replace(&mut self.lines, 0))
    }

    /// The time as text. Within a second, only the fraction is made anew.
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
