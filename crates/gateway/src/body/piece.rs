use bytes::{Buf, Bytes};

use crate::send_file::FilePlaceholder;

/// A piece of a body.
#[derive(Debug)]
pub enum Piece {
    /// The bytes.
    Bytes(Bytes),
    /// The placeholder for a part of a file.
    Part(FilePlaceholder),
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.remaining(),
            Self::Part(part) => part.remaining(),
        }
    }

    fn chunk(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes.chunk(),
            Self::Part(part) => part.chunk(),
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Self::Bytes(bytes) => bytes.advance(count),
            Self::Part(part) => part.advance(count),
        }
    }
}
