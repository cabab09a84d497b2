//! The load: the requests of clients, and the objects that they store.

use serde::Serialize;

/// An operation of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// HeadObject.
    Head,
    /// GetObject of whole objects.
    Get,
    /// PutObject.
    Put,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 3] = [Self::Head, Self::Get, Self::Put];

    /// Returns the operation's name: `HEAD`, `GET` or `PUT`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Head => "HEAD",
            Self::Get => "GET",
            Self::Put => "PUT",
        }
    }
}

/// The moment at which a write is acknowledged, as `slipway serve --durability` sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The write is acknowledged when data, attributes and name are on disk.
    Full,
    /// The write is acknowledged when data and attributes are on disk.
    Data,
    /// The write is acknowledged when the data is in the kernel's memory.
    None,
}

/// A size of objects, with their share of all objects.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizeShare {
    /// The size of each of these objects, in bytes.
    pub bytes: f64,
    /// The share of objects of this size in all objects, and in all requests. The shares of all
    /// sizes add up to 1.
    pub share: f64,
}

/// The requests of clients, and the objects that they store.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Load {
    /// The number of objects that are stored at the beginning.
    pub objects: f64,
    /// The sizes of the objects.
    pub sizes: Vec<SizeShare>,
    /// The number of HEADs a second.
    pub heads: f64,
    /// The number of GETs a second.
    pub gets: f64,
    /// The number of PUTs a second.
    pub puts: f64,
    /// The number of clients that send requests at the same time.
    pub clients: f64,
    /// The share by which the number of objects grows in a year: 0.3 is 30 %.
    pub growth: f64,
    /// The number of years for which the storage has to suffice.
    pub years: f64,
    /// The moment at which writes are acknowledged.
    pub durability: Durability,
    /// The share of reads that are served from the memory of the nodes, from 0 to 1.
    pub from_memory: f64,
}

impl Load {
    /// Returns the mean size of an object, in bytes.
    pub fn mean_bytes(&self) -> f64 {
        self.sizes.iter().map(|size| size.share * size.bytes).sum()
    }

    /// Returns the number of objects after this many years.
    pub fn objects_after(&self, years: f64) -> f64 {
        self.objects * (1.0 + self.growth).powf(years)
    }

    /// Returns the rate of an operation, per second.
    pub fn rate(&self, operation: Operation) -> f64 {
        match operation {
            Operation::Head => self.heads,
            Operation::Get => self.gets,
            Operation::Put => self.puts,
        }
    }

    /// Returns the same load, but with one request a second of this operation and no other
    /// requests.
    pub(crate) fn only(&self, operation: Operation) -> Self {
        let rate = |of| if of == operation { 1.0 } else { 0.0 };
        Self {
            heads: rate(Operation::Head),
            gets: rate(Operation::Get),
            puts: rate(Operation::Put),
            ..self.clone()
        }
    }

    /// Fails if a number of the load is out of its range.
    pub(crate) fn check(&self) -> Result<(), String> {
        let shares: f64 = self.sizes.iter().map(|size| size.share).sum();
        if self.sizes.is_empty() || (shares - 1.0).abs() > 1e-6 {
            return Err("the shares of sizes must add up to 100 %".to_owned());
        }
        for (name, number, most) in [
            ("objects", self.objects, 1e15),
            ("HEADs a second", self.heads, 1e9),
            ("GETs a second", self.gets, 1e9),
            ("PUTs a second", self.puts, 1e9),
            ("clients", self.clients, 1e9),
            ("growth", self.growth, 100.0),
            ("years", self.years, 50.0),
            ("the share read from memory", self.from_memory, 1.0),
        ] {
            if !(0.0..=most).contains(&number) {
                return Err(format!("{name}: {number} is not between 0 and {most}"));
            }
        }
        Ok(())
    }
}
