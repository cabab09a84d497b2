//! Checks the capabilities that a process needs to act as other users, and gives up all others.

use std::{fmt, fs, io};

use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capabilities_secure_bits,
    capability_is_in_bounding_set, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

use crate::acting::{Identity, acting};
use crate::ids;

/// The capabilities by which a process may do with files what their permissions refuse. The kernel
/// takes these from a thread while its file calls are another user's (capabilities(7), "Effect of
/// user ID changes").
const OF_FILES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::LINUX_IMMUTABLE)
    .union(CapabilitySet::MAC_OVERRIDE)
    .union(CapabilitySet::MKNOD);
/// The capabilities that a process which acts as others keeps: to act, to do what its own files
/// need, to see who writes a file, and to listen on ports below 1024.
const KEPT: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::LEASE)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// The part of them that a process cannot do without: one that lacks one of the last three could
/// act as others, but not reach or give away its own files.
const NEEDED: [(CapabilitySet, &str); 5] = [
    (CapabilitySet::SETUID, "CAP_SETUID"),
    (CapabilitySet::SETGID, "CAP_SETGID"),
    (CapabilitySet::DAC_OVERRIDE, "CAP_DAC_OVERRIDE"),
    (CapabilitySet::CHOWN, "CAP_CHOWN"),
    (CapabilitySet::FOWNER, "CAP_FOWNER"),
];

/// The reason why a process cannot act as other users.
#[derive(Debug)]
pub enum Lack {
    /// It is not the superuser of its user namespace.
    Superuser,
    /// It lacks the capability, whose name this is.
    Capability(&'static str),
    /// Its user namespace has setgroups(2) switched off.
    Groups,
    /// It would keep its capabilities that concern files while it acts as a user.
    Withdrawal,
    /// The kernel refused the trial.
    Refused(io::Error),
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superuser => f.write_str("the process is not the superuser (uid 0)"),
            Self::Capability(name) => write!(f, "the process lacks the capability {name}"),
            Self::Groups => {
                f.write_str("setgroups(2) is switched off in the user namespace (/proc/self/setgroups says deny)")
            }
            Self::Withdrawal => f.write_str(
                "the process would keep its capabilities that concern files while it acts as a user, which the \
                 secure bit NO_SETUID_FIXUP does",
            ),
            Self::Refused(error) => write!(f, "a trial failed: {error}"),
        }
    }
}

impl std::error::Error for Lack {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(error) => Some(error),
            _ => None,
        }
    }
}

/// Finds out whether the process can act as other users, which is tried with one of them.
pub fn can_act(trial: Identity<'_>) -> Result<(), Lack> {
    if ids::own().0 != ids::SUPERUSER {
        return Err(Lack::Superuser);
    }
    let held = capabilities(None).map_err(|errno| Lack::Refused(errno.into()))?.effective;
    for (capability, name) in NEEDED {
        if !held.contains(capability) {
            return Err(Lack::Capability(name));
        }
    }
    // Kernels without user namespaces have no such file.
    if fs::read_to_string("/proc/self/setgroups").is_ok_and(|text| text.trim_end() == "deny") {
        return Err(Lack::Groups);
    }
    let bits = capabilities_secure_bits().map_err(|errno| Lack::Refused(errno.into()))?;
    if bits.contains(CapabilitiesSecureBits::NO_SETUID_FIXUP) {
        return Err(Lack::Withdrawal);
    }
    let left = acting(trial, || capabilities(None)).map_err(Lack::Refused)?;
    let left = left.map_err(|errno| Lack::Refused(errno.into()))?.effective;
    if left.intersects(OF_FILES) { Err(Lack::Withdrawal) } else { Ok(()) }
}

/// Gives up, for good, all capabilities that a process does not need to act as other users, and
/// supplementary groups. No program that it starts gets any (`no_new_privs`).
///
/// Concerns the calling thread, and the threads that it makes from then on: so it is called before
/// there are others.
pub fn keep_what_acting_needs() -> io::Result<()> {
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        // Those beyond the kernel's last one are not in it, which is an error.
        let is_there = capability_is_in_bounding_set(capability).unwrap_or(false);
        if is_there && !KEPT.contains(capability) {
            remove_capability_from_bounding_set(capability)?;
        }
    }
    ids::set_groups(&[])?;
    clear_ambient_capability_set()?;
    let held = capabilities(None)?;
    let sets = CapabilitySets {
        effective: held.effective & KEPT,
        permitted: held.permitted & KEPT,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets)?;
    Ok(set_no_new_privs(true)?)
}
