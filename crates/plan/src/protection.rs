//! Protection of data within a node (RAID, ZFS) and across nodes (strips or copies).

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::units::{BLOCK, RECORD};

/// The protection within a node, over all its volumes as one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Local {
    /// No protection: each volume has its own data, or data is striped over the volumes.
    None,
    /// RAID 1 or 10, or mirrors of ZFS, with the number of copies of all data.
    Mirror(u32),
    /// RAID 5 or 6, with the number of volumes that parity takes. Parity is rewritten in place.
    Raid(u32),
    /// RAID-Z of ZFS, with the number of parity sectors for each row of a record. Records are never
    /// rewritten in place.
    Raidz(u32),
}

/// The protection across nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Spread {
    /// No protection: each file is on one node.
    None,
    /// The number of copies, each on another node.
    Copies(u32),
    /// Strips of data and of parity, each on another node.
    Strips {
        /// The number of strips of data.
        data: u32,
        /// The number of strips of parity.
        parity: u32,
    },
}

impl Local {
    /// Returns the share of the raw space that holds data, for this number of volumes.
    pub fn efficiency(self, volumes: u32) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Mirror(copies) => 1.0 / f64::from(copies),
            Self::Raid(parity) | Self::Raidz(parity) => {
                f64::from(volumes.saturating_sub(parity)) / f64::from(volumes)
            }
        }
    }

    /// Returns the number of volumes of a node that may fail, whichever they are.
    pub fn survives(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Mirror(copies) => copies.saturating_sub(1),
            Self::Raid(parity) | Self::Raidz(parity) => parity,
        }
    }

    /// Returns the number of blocks on the volumes for `data` blocks of data. With RAID it may be a
    /// fraction, since all blocks of a stripe share the stripe's parity. With ZFS, each record has
    /// parity sectors for each row of data, and is rounded up to a multiple of the smallest space
    /// that can be freed.
    pub(crate) fn blocks(self, data: f64, volumes: u32) -> f64 {
        let Self::Raidz(parity) = self else { return data / self.efficiency(volumes) };
        let parity = f64::from(parity);
        let record = |data: f64| {
            let all = data + parity * (data / (f64::from(volumes) - parity)).ceil();
            (all / (parity + 1.0)).ceil() * (parity + 1.0)
        };
        let full = RECORD / BLOCK;
        (data / full).floor() * record(full) + record(data % full)
    }

    /// Returns the number of operations on volumes for one small write, and for one small read.
    pub(crate) fn operations(self) -> (f64, f64) {
        match self {
            Self::None => (1.0, 1.0),
            Self::Mirror(copies) => (f64::from(copies), 1.0),
            // The old block and each old parity are read before the new ones are written.
            Self::Raid(parity) => (2.0 * (f64::from(parity) + 1.0), 1.0),
            // A block that fits in a sector is mirrored.
            Self::Raidz(parity) => (f64::from(parity) + 1.0, 1.0),
        }
    }

    /// Fails if the protection is not possible with this number of volumes.
    pub(crate) fn check(self, volumes: u32) -> Result<(), String> {
        let needed = match self {
            Self::None => 1,
            Self::Mirror(copies) => copies,
            Self::Raid(parity) | Self::Raidz(parity) => parity + 2,
        };
        if volumes < needed {
            return Err(format!(
                "{self} needs at least {needed} volumes in a node, but there {}",
                are(volumes)
            ));
        }
        if let Self::Mirror(copies) = self
            && !volumes.is_multiple_of(copies)
        {
            return Err(format!(
                "{volumes} volumes can't be mirrored by {copies}: use a multiple of {copies}"
            ));
        }
        Ok(())
    }
}

/// Returns "is 1" for the number 1, and "are 2" and so on for others.
fn are(number: u32) -> String {
    format!("{} {number}", if number == 1 { "is" } else { "are" })
}

impl Spread {
    /// Returns the share of the nodes' space that holds data rather than protection.
    pub fn efficiency(self) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Copies(copies) => 1.0 / f64::from(copies),
            Self::Strips { data, parity } => f64::from(data) / f64::from(data + parity),
        }
    }

    /// Returns the number of nodes that may fail without loss of data.
    pub fn survives(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Copies(copies) => copies.saturating_sub(1),
            Self::Strips { parity, .. } => parity,
        }
    }

    /// Returns the number of nodes over which one file is spread.
    pub fn width(self) -> u32 {
        match self {
            Self::None => 1,
            Self::Copies(copies) => copies,
            Self::Strips { data, parity } => data + parity,
        }
    }

    /// Returns the pieces into which a file of `blocks` blocks is divided. Each pair has a number
    /// of pieces, and the number of blocks of each.
    pub(crate) fn pieces(self, blocks: f64) -> Vec<(f64, f64)> {
        match self {
            Self::None => vec![(1.0, blocks)],
            Self::Copies(copies) => vec![(f64::from(copies), blocks)],
            Self::Strips { data, parity } => {
                let data = f64::from(data);
                let (rows, rest) = ((blocks / data).floor(), blocks % data);
                let high = if rest > 0.0 { rows + 1.0 } else { rows };
                vec![(rest, rows + 1.0), (data - rest, rows), (f64::from(parity), high)]
            }
        }
    }

    /// Fails if the protection is not possible with this number of nodes.
    pub(crate) fn check(self, nodes: u32) -> Result<(), String> {
        let width = self.width();
        if nodes < width {
            return Err(format!(
                "{self} needs {width} nodes, one for each strip or copy, but there {}: use more nodes, or a \
                 protection with fewer strips or copies",
                are(nodes)
            ));
        }
        Ok(())
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Mirror(2) => f.write_str("mirror"),
            Self::Mirror(copies) => write!(f, "mirror{copies}"),
            Self::Raid(parity) => write!(f, "raid{}", parity + 4),
            Self::Raidz(parity) => write!(f, "raidz{parity}"),
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Copies(copies) => write!(f, "{copies}x"),
            Self::Strips { data, parity } => write!(f, "{data}+{parity}"),
        }
    }
}

impl FromStr for Local {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "none" => Self::None,
            "mirror" | "raid1" | "raid10" => Self::Mirror(2),
            "mirror3" => Self::Mirror(3),
            "raid5" => Self::Raid(1),
            "raid6" => Self::Raid(2),
            "raidz1" => Self::Raidz(1),
            "raidz2" => Self::Raidz(2),
            "raidz3" => Self::Raidz(3),
            _ => {
                return Err(format!(
                    "{text:?} is not a known protection of a node's volumes: expected none, mirror (raid1, raid10), \
                     mirror3, raid5, raid6, raidz1, raidz2 or raidz3"
                ));
            }
        })
    }
}

impl TryFrom<String> for Spread {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Spread {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "{text:?} is not a known protection across nodes: expected none, copies such as 3x (2 to 8), strips \
                 of data and parity such as 4+2 (up to 32+8), or a name of the catalogue such as +2n"
            )
        };
        if text == "none" {
            return Ok(Self::None);
        }
        if let Some(copies) = text.strip_suffix('x') {
            let copies = copies.parse().ok().filter(|copies| (2..=8).contains(copies));
            return copies.map(Self::Copies).ok_or_else(bad);
        }
        let (data, parity) = text.split_once('+').ok_or_else(bad)?;
        let number = |text: &str, most: u32| text.parse().ok().filter(|n| (1..=most).contains(n));
        let (data, parity) = number(data, 32).zip(number(parity, 8)).ok_or_else(bad)?;
        Ok(Self::Strips { data, parity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_shown() {
        for name in ["none", "mirror", "mirror3", "raid5", "raid6", "raidz1", "raidz2", "raidz3"] {
            assert_eq!(name.parse::<Local>().unwrap().to_string(), name);
        }
        for name in ["none", "2x", "3x", "2+2", "4+2", "16+4"] {
            assert_eq!(name.parse::<Spread>().unwrap().to_string(), name);
        }
        for bad in ["", "x", "1x", "9x", "+2n", "4+", "4+0", "0+2", "4+2+1", "33+2", "-1+2"] {
            assert!(bad.parse::<Spread>().unwrap_err().contains("4+2"), "{bad}");
        }
        assert!("raid4".parse::<Local>().unwrap_err().contains("raid6"));
    }

    #[test]
    fn raidz_pads_small_blocks() {
        // One sector with raidz2 has two of parity: three, which is a multiple of three.
        assert!((Local::Raidz(2).blocks(1.0, 8) - 3.0).abs() < 1e-9);
        // 32 sectors are six rows, of six volumes of data each, with twelve sectors of parity: 44,
        // rounded up to 45.
        assert!((Local::Raidz(2).blocks(32.0, 8) - 45.0).abs() < 1e-9);
        assert!((Local::Raidz(2).blocks(65.0, 8) - 93.0).abs() < 1e-9);
        assert!((Local::Raid(2).blocks(6.0, 8) - 8.0).abs() < 1e-9);
    }

    #[test]
    fn strips_hold_every_block_once() {
        for blocks in 0..40_u32 {
            let pieces = Spread::Strips { data: 4, parity: 2 }.pieces(f64::from(blocks));
            let data: f64 = pieces[..2].iter().map(|(pieces, blocks)| pieces * blocks).sum();
            assert!((data - f64::from(blocks)).abs() < 1e-9, "{blocks}");
            let (parity, high) = pieces[2];
            assert!((parity - 2.0).abs() < 1e-9 && (high - f64::from(blocks.div_ceil(4))).abs() < 1e-9);
        }
    }
}
