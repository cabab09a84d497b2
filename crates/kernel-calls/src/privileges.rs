//! Checks the capabilities that a process needs to act as other users, and gives up all others.

use std::{fmt, fs, io};

use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capabilities_secure_bits,
    capability_is_in_bounding_set, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

use crate::acting::{Identity, acting};
use crate::ids;

/// The capabilities that let a process ignore the permissions of files. The kernel takes them from
/// a thread while its file calls are another user's (capabilities(7), "Effect of user ID changes").
const OF_FILES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::LINUX_IMMUTABLE)
    .union(CapabilitySet::MAC_OVERRIDE)
    .union(CapabilitySet::MKNOD);
/// The capabilities that a process which acts as other users keeps: for acting, for access to its
/// own files, for finding out which processes write to a file, and for listening on ports below
/// 1024.
const KEPT: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::LEASE)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// The capabilities that a process needs to act as other users, with their names. Without one of
/// the last three it could act as others, but not access its own files or give them to another
/// owner.
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
    /// The process is not the superuser of its user namespace.
    Superuser,
    /// The process lacks the capability with this name.
    Capability(&'static str),
    /// In the process's user namespace, setgroups(2) is switched off.
    Groups,
    /// The process would keep its capabilities that concern files while it acts as a user.
    Withdrawal,
    /// The kernel refused the trial, in which the process acted as a user.
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

/// Checks whether the process can act as other users, and tries it with the user `trial`.
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

/// Drops, for good, the supplementary groups and all capabilities that a process does not need to
/// act as other users. A program that the process starts cannot get them back (`no_new_privs`).
///
/// The change applies to the calling thread, and to threads that it makes afterwards. So call it
/// before there are other threads.
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
