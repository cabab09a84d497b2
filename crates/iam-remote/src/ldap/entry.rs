//! Reads an entry of the directory.

use std::sync::Arc;

use ldap3::SearchEntry;
use s3_types::{UnixAccount, UnixIdentity, UnixName, hex};

/// The bit of `userAccountControl` that disables an account.
///
/// Source: [MS-ADTS], 2.2.16.
const ACCOUNT_DISABLED: i64 = 0x2;
/// `pwdAccountLockedTime` of an account that an administrator has locked for good.
///
/// Source: draft-behera-ldap-password-policy-11, 5.3.3.
const LOCKED_FOR_GOOD: &str = "000001010000Z";
/// The seconds from 1601, where Windows begins to count, to 1970.
const SECONDS_FROM_1601: i64 = 11_644_473_600;

/// The attributes, beside the name, that are asked for.
pub const ATTRIBUTES: [&str; 11] = [
    "entryUUID",
    "objectGUID",
    "nsUniqueId",
    "ipaUniqueID",
    "uidNumber",
    "gidNumber",
    "userAccountControl",
    "accountExpires",
    "nsAccountLock",
    "pwdAccountLockedTime",
    "loginDisabled",
];

/// An entry, whose attributes have names without case.
#[derive(Debug)]
pub struct Entry(SearchEntry);

impl Entry {
    /// Takes what a search has found.
    pub const fn new(found: SearchEntry) -> Self {
        Self(found)
    }

    /// Returns the DN.
    pub fn dn(&self) -> &str {
        &self.0.dn
    }

    /// Returns the value of an attribute that is a text; of several the least, so that it is always
    /// the same one.
    pub fn text(&self, name: &str) -> Option<&str> {
        let mut attributes = self.0.attrs.iter();
        let (_, values) = attributes.find(|(attribute, _)| attribute.eq_ignore_ascii_case(name))?;
        values.iter().map(String::as_str).min()
    }

    fn bytes(&self, name: &str) -> Option<&[u8]> {
        let mut attributes = self.0.bin_attrs.iter();
        let found = attributes.find(|(attribute, _)| attribute.eq_ignore_ascii_case(name));
        let of_text = || self.text(name).map(str::as_bytes);
        found.and_then(|(_, values)| values.first()).map(Vec::as_slice).or_else(of_text)
    }

    /// Returns the value of an attribute that has one, which is a text.
    pub fn only(&self, name: &str) -> Option<&str> {
        let is_it = |attribute: &str| attribute.eq_ignore_ascii_case(name);
        if self.0.bin_attrs.keys().any(|attribute| is_it(attribute)) {
            return None;
        }
        let mut attributes = self.0.attrs.iter().filter(|(attribute, _)| is_it(attribute));
        match (attributes.next(), attributes.next()) {
            (Some((_, values)), None) => match &**values {
                [one] => Some(one),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns a number; `None` if there is none, or it is none.
    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.trim().parse().ok()
    }

    /// Returns how sessions name the entry: its unique id, of whichever kind its directory has, and
    /// its DN.
    pub fn reference(&self) -> Box<str> {
        let id: String = if let Some(bytes) = self.bytes("objectGUID") {
            hex::encode(bytes)
        } else {
            let names = ["entryUUID", "nsUniqueId", "ipaUniqueID"];
            let found = names.iter().find_map(|name| self.text(name)).unwrap_or("-");
            found.chars().filter(|c| !c.is_whitespace()).collect()
        };
        format!("{id} {}", self.dn()).into()
    }

    /// Returns the DN of a reference.
    pub fn dn_of(reference: &str) -> Option<&str> {
        reference.split_once(' ').map(|(_, dn)| dn)
    }

    /// True if the directory says that the entry is disabled, or has expired. Directories refuse
    /// its password then, but a session has none.
    pub fn is_disabled(&self, now: i64) -> bool {
        let is_set = |name: &str| self.text(name).is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let control = self.number::<i64>("userAccountControl").unwrap_or(0);
        // In tenths of a microsecond; 0 and the greatest number are never.
        let expires = self.number::<i64>("accountExpires").filter(|at| !matches!(*at, 0 | i64::MAX));
        let has_expired = expires.is_some_and(|at| at / 10_000_000 - SECONDS_FROM_1601 <= now);
        control & ACCOUNT_DISABLED != 0
            || has_expired
            || is_set("nsAccountLock")
            || is_set("loginDisabled")
            || self.text("pwdAccountLockedTime") == Some(LOCKED_FOR_GOOD)
    }

    /// Returns the group id of a POSIX group.
    pub fn gid(&self) -> Option<u32> {
        self.number("gidNumber")
    }

    /// Returns whom the entry is on the file system (posixAccount), with these groups besides.
    pub fn unix(&self, groups: &[u32]) -> Option<UnixName> {
        let (uid, gid) = (self.number("uidNumber")?, self.gid()?);
        let account = UnixAccount::new(uid, gid)?;
        // Root's group is nobody's.
        let others = groups.iter().copied().filter(|group| !matches!(*group, 0 | u32::MAX) && *group != gid);
        let mut groups: Vec<_> = others.collect();
        groups.sort_unstable();
        groups.dedup();
        Some(UnixName::Ids(Arc::new(UnixIdentity { account, groups: groups.into() })))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn entry(attributes: &[(&str, &str)]) -> Entry {
        let mut attrs: HashMap<String, Vec<String>> = HashMap::new();
        for (name, value) in attributes {
            attrs.entry((*name).to_owned()).or_default().push((*value).to_owned());
        }
        Entry(SearchEntry { dn: "uid=ann,dc=lab".to_owned(), attrs, bin_attrs: HashMap::new() })
    }

    #[test]
    fn references() {
        let of = |attributes: &[(&str, &str)]| entry(attributes).reference().to_string();
        assert_eq!(of(&[("entryuuid", "1-2")]), "1-2 uid=ann,dc=lab");
        assert_eq!(of(&[]), "- uid=ann,dc=lab");
        let mut of_ad = entry(&[]);
        of_ad.0.bin_attrs.insert("objectGUID".to_owned(), vec![vec![0, 0xff]]);
        assert_eq!(&*of_ad.reference(), "00ff uid=ann,dc=lab");
        assert_eq!(Entry::dn_of("1-2 uid=ann, dc=lab"), Some("uid=ann, dc=lab"));
    }

    #[test]
    fn disabled_entries() {
        let now = 1_800_000_000;
        for (name, value, wanted) in [
            ("userAccountControl", "512", false),
            ("userAccountControl", "514", true),
            ("accountExpires", "0", false),
            ("accountExpires", "9223372036854775807", false),
            ("accountExpires", "134444735990000000", true),
            ("accountExpires", "134444736010000000", false),
            ("nsaccountlock", "TRUE", true),
            ("nsAccountLock", "FALSE", false),
            ("pwdAccountLockedTime", "20270115080000Z", false),
            ("pwdAccountLockedTime", "000001010000Z", true),
        ] {
            assert_eq!(entry(&[(name, value)]).is_disabled(now), wanted, "{name} {value}");
        }
        assert!(!entry(&[]).is_disabled(now));
    }

    #[test]
    fn identities_of_posix() {
        let ann = entry(&[("uidNumber", "12001"), ("gidNumber", "12001")]);
        let Some(UnixName::Ids(unix)) = ann.unix(&[500, 0, 12_001, 400, 500, u32::MAX]) else { panic!() };
        assert_eq!(
            (unix.account.uid(), unix.account.gid(), &*unix.groups),
            (12_001, 12_001, &[400, 500][..])
        );
        for attributes in [
            &[][..],
            &[("uidNumber", "1")],
            &[("gidNumber", "1")],
            &[("uidNumber", "-1"), ("gidNumber", "1")],
            &[("uidNumber", "4294967295"), ("gidNumber", "1")],
            &[("uidNumber", "x"), ("gidNumber", "1")],
        ] {
            assert_eq!(entry(attributes).unix(&[]), None, "{attributes:?}");
        }
        // Root is refused where the identity is used, by name.
        assert!(entry(&[("uidNumber", "0"), ("gidNumber", "0")]).unix(&[]).is_some());
    }

    #[test]
    fn the_same_of_several_names() {
        let many = entry(&[("UID", "zoe"), ("UID", "ann")]);
        assert_eq!(many.text("uid"), Some("ann"));
        assert_eq!((many.only("uid"), many.only("cn")), (None, None));
        let mut one = entry(&[("Key", "AKIA")]);
        assert_eq!(one.only("key"), Some("AKIA"));
        one.0.bin_attrs.insert("KEY".to_owned(), vec![vec![0xff]]);
        assert_eq!(one.only("key"), None);
        assert_eq!(entry(&[("UID", "zoe")]).only("uid"), Some("zoe"));
        assert_eq!(entry(&[]).only("uid"), None);
    }
}
