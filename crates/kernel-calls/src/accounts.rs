//! Looks up the system's accounts: users and groups from all sources of the name service switch
//! (nsswitch.conf(5)), such as `/etc/passwd` and directory servers.

use std::ffi::{CStr, CString, c_int};
use std::mem::MaybeUninit;
use std::{io, ptr};

/// The longest entry of a user that is read, in bytes.
const ENTRY_BYTES_MAX: usize = 1 << 20;
/// The largest number of groups of a user, NGROUPS_MAX of the kernel.
const GROUPS_MAX: usize = 65_536;

/// A user's ids, and all groups that the user is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The user id.
    pub uid: u32,
    /// The id of the user's primary group.
    pub gid: u32,
    /// The ids of the user's other groups, in ascending order.
    pub groups: Box<[u32]>,
}

/// Looks up a user by name; `None` if there is no such user. Waits for the sources of the name
/// service switch, such as a directory server, as long as they take. Groups of a source that does
/// not answer are missing, since the C library does not report the failure.
pub fn account_of(name: &str) -> io::Result<Option<Account>> {
    // No name has a NUL byte.
    let Ok(name) = CString::new(name) else { return Ok(None) };
    let Some((uid, gid)) = ids_of(&name)? else { return Ok(None) };
    let mut groups = groups_of(&name, gid)?;
    groups.sort_unstable();
    groups.dedup();
    groups.retain(|group| *group != gid);
    Ok(Some(Account { uid, gid, groups: groups.into() }))
}

/// Looks up the name of a user id; `None` if the system has none.
pub fn name_of_user(uid: u32) -> Option<String> {
    let mut texts = vec![0; 1024];
    loop {
        let mut entry = MaybeUninit::<libc::passwd>::uninit();
        let mut found = ptr::null_mut();
        // SAFETY: the entry and its texts may be written to, of which the call knows the length;
        // both live until it returns.
        let status = unsafe {
            libc::getpwuid_r(uid, entry.as_mut_ptr(), texts.as_mut_ptr(), texts.len(), &raw mut found)
        };
        match status {
            0 if found.is_null() => return None,
            // SAFETY: the call has written the entry, whose name is in `texts`.
            0 => return unsafe { text_at(entry.assume_init_ref().pw_name) },
            libc::EINTR => {}
            libc::ERANGE if texts.len() < ENTRY_BYTES_MAX => texts.resize(texts.len() * 4, 0),
            _ => return None,
        }
    }
}

/// Looks up the name of a group id; `None` if the system has none.
pub fn name_of_group(gid: u32) -> Option<String> {
    let mut texts = vec![0; 1024];
    loop {
        let mut entry = MaybeUninit::<libc::group>::uninit();
        let mut found = ptr::null_mut();
        // SAFETY: as above.
        let status = unsafe {
            libc::getgrgid_r(gid, entry.as_mut_ptr(), texts.as_mut_ptr(), texts.len(), &raw mut found)
        };
        match status {
            0 if found.is_null() => return None,
            // SAFETY: as above.
            0 => return unsafe { text_at(entry.assume_init_ref().gr_name) },
            libc::EINTR => {}
            libc::ERANGE if texts.len() < ENTRY_BYTES_MAX => texts.resize(texts.len() * 4, 0),
            _ => return None,
        }
    }
}

/// Copies a text that ends with a NUL byte; `None` without one, or if it is not UTF-8.
///
/// # Safety
/// The text lives until the function returns.
unsafe fn text_at(text: *const libc::c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller says so, and texts of the C library end with a NUL byte.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().ok().map(str::to_owned)
}

fn ids_of(name: &CStr) -> io::Result<Option<(u32, u32)>> {
    let mut texts = vec![0; 1024];
    loop {
        let mut entry = MaybeUninit::<libc::passwd>::uninit();
        let mut found = ptr::null_mut();
        // SAFETY: the name ends with a NUL byte, and the entry and its texts may be written to, of
        // which the call knows the length; all live until it returns.
        let status = unsafe {
            libc::getpwnam_r(
                name.as_ptr(),
                entry.as_mut_ptr(),
                texts.as_mut_ptr(),
                texts.len(),
                &raw mut found,
            )
        };
        match status {
            0 if found.is_null() => return Ok(None),
            0 => {
                // SAFETY: the call has written it.
                let entry = unsafe { entry.assume_init_ref() };
                return Ok(Some((entry.pw_uid, entry.pw_gid)));
            }
            libc::EINTR => {}
            // Some switches say so of a name that is not there (getpwnam(3)).
            libc::ENOENT | libc::ESRCH => return Ok(None),
            libc::ERANGE if texts.len() < ENTRY_BYTES_MAX => texts.resize(texts.len() * 4, 0),
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

fn groups_of(name: &CStr, gid: u32) -> io::Result<Vec<u32>> {
    let mut groups = vec![0; 64];
    loop {
        let room = c_int::try_from(groups.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut count = room;
        // SAFETY: the name ends with a NUL byte, and the call writes at most `count` numbers.
        let status = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
        let counted = usize::try_from(count).unwrap_or(0);
        if status >= 0 {
            groups.truncate(counted);
            return Ok(groups);
        }
        if groups.len() >= GROUPS_MAX {
            return Err(io::Error::other("a user is in more groups than the kernel takes"));
        }
        groups.resize(counted.max(groups.len() * 2).min(GROUPS_MAX), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn id(option: &str, name: &str) -> Vec<u32> {
        let output = Command::new("id").args([option, name]).output().unwrap();
        assert!(output.status.success(), "id {option} {name}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().map(|number| number.parse().unwrap()).collect()
    }

    #[test]
    fn accounts_are_those_that_id_shows() {
        for name in ["root", "nobody", "daemon", "www-data"] {
            let account = account_of(name).unwrap().unwrap();
            assert_eq!(vec![account.uid], id("-u", name), "{name}");
            assert_eq!(vec![account.gid], id("-g", name), "{name}");
            let mut all = id("-G", name);
            all.sort_unstable();
            all.retain(|group| *group != account.gid);
            assert_eq!(&*account.groups, all, "{name}");
        }
    }

    #[test]
    fn ids_have_the_names_that_id_shows() {
        for name in ["root", "nobody", "www-data"] {
            let account = account_of(name).unwrap().unwrap();
            assert_eq!(name_of_user(account.uid).as_deref(), Some(name));
            let group = Command::new("id").args(["-gn", name]).output().unwrap().stdout;
            assert_eq!(
                name_of_group(account.gid).as_deref(),
                Some(String::from_utf8(group).unwrap().trim_end())
            );
        }
        assert_eq!((name_of_user(4_000_000_123), name_of_group(4_000_000_123)), (None, None));
    }

    #[test]
    fn a_name_that_is_not_there_has_no_account() {
        for name in ["", "nobody\0", "no such user", &"n".repeat(10_000), "0"] {
            assert_eq!(account_of(name).unwrap(), None, "{name:?}");
        }
    }
}
