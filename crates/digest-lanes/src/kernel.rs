//! The kernels that digest several streams at once, and the processors that can run them.

/// Code that digests several streams at once, named by the instructions that it uses and the number
/// of its lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Digests one stream, in the lowest lane of a register.
    Avx512x1,
    Avx512x8,
    Avx512x16,
    Avx2x8,
    Neonx8,
}

/// A kernel, and the smallest number of streams for which it is faster than the next entry of its
/// list, or than digesting one stream after the other.
#[derive(Debug)]
pub struct Way {
    pub kernel: Kernel,
    pub fewest: usize,
}

impl Kernel {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 5] =
        [Self::Avx512x1, Self::Avx512x8, Self::Avx512x16, Self::Avx2x8, Self::Neonx8];

    /// Returns the number of streams that the kernel takes at once.
    pub fn lanes(self) -> usize {
        match self {
            Self::Avx512x1 => 1,
            Self::Avx512x8 | Self::Avx2x8 | Self::Neonx8 => 8,
            Self::Avx512x16 => 16,
        }
    }

    /// True if this processor has the instructions that the kernel needs.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512x1 | Self::Avx512x8 | Self::Avx512x16 => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2x8 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "aarch64")]
            Self::Neonx8 => true,
            _ => false,
        }
    }
}
