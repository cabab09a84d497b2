//! The searches: for somebody, and for the groups of somebody.

use std::collections::HashSet;

use iam::folded_dn;
use ldap3::{DerefAliases, Ldap, LdapResult, ResultEntry, Scope, SearchEntry, SearchOptions, ldap_escape};

use super::entry::{ATTRIBUTES, Entry};
use super::failure::{Failure, result};
use super::settings::{KeyAttributes, LdapSettings};
use crate::limits::{DIRECTORY_GROUPS_MAX, DIRECTORY_TIME_MAX, GROUP_DEPTH_MAX, GROUPS_IN_A_SEARCH};

/// The results that a search may end with (RFC 4511, 4.1.9).
const SUCCESS: u32 = 0;
const SIZE_LIMIT_EXCEEDED: u32 = 4;
const NO_SUCH_OBJECT: u32 = 32;

/// The attribute that stands for none (RFC 4511, 4.5.1.8).
const NO_ATTRIBUTES: &str = "1.1";

/// A name that nobody has, for groups that are looked for by the DN of another one.
const NOBODY: &str = "\0";

/// The groups of somebody.
#[derive(Debug, Default)]
pub struct Groups {
    /// Their DNs, folded.
    pub dns: Vec<Box<str>>,
    /// The group ids of those that are POSIX groups.
    pub gids: Vec<u32>,
}

/// The place that a search looks in.
#[derive(Debug, Clone, Copy)]
enum Place<'p> {
    /// At one entry.
    At(&'p str),
    /// At all entries below.
    Below(&'p str),
}

/// Returns the entries that a search finds, and whether there are more. Referrals to other servers
/// are passed over.
async fn search(
    ldap: &mut Ldap,
    place: Place<'_>,
    filter: &str,
    attributes: &[&str],
    most: usize,
) -> Result<(Vec<Entry>, bool), Failure> {
    let (base, scope) = match place {
        Place::At(dn) => (dn, Scope::Base),
        Place::Below(dn) => (dn, Scope::Subtree),
    };
    let seconds = i32::try_from(DIRECTORY_TIME_MAX.as_secs()).unwrap_or(i32::MAX);
    let size = i32::try_from(most).unwrap_or(i32::MAX);
    let options = SearchOptions::new().deref(DerefAliases::Never).timelimit(seconds).sizelimit(size);
    let found = ldap.with_search_options(options).search(base, scope, filter, attributes.to_vec()).await;
    let found = found.map_err(|e| format!("a search failed: {e}"))?;
    let (entries, LdapResult { rc, text, .. }) = (found.0, found.1);
    let is_entry = |entry: &ResultEntry| !entry.is_ref() && !entry.is_intermediate();
    let entries = entries.into_iter().filter(is_entry);
    let entries: Vec<_> = entries.take(most).map(|entry| Entry::new(SearchEntry::construct(entry))).collect();
    match rc {
        SUCCESS => Ok((entries, false)),
        SIZE_LIMIT_EXCEEDED => Ok((entries, true)),
        NO_SUCH_OBJECT if matches!(place, Place::At(_)) => Ok((Vec::new(), false)),
        _ => Err(Failure::Odd(format!("a search below {base:?} failed: {}", result(rc, &text)))),
    }
}

fn of_people(settings: &LdapSettings) -> Vec<&str> {
    ATTRIBUTES.iter().copied().chain([&*settings.name_attribute]).collect()
}

/// Fails unless the directory shows an entry at or below each base of searches.
pub async fn look_at_bases(ldap: &mut Ldap, settings: &LdapSettings) -> Result<(), Failure> {
    let LdapSettings { base, group_base, .. } = settings;
    let bases = [("--ldap-base", base), ("--ldap-group-base", group_base)];
    for (option, base) in bases.iter().take(if base == group_base { 1 } else { 2 }) {
        let found = search(ldap, Place::Below(base), "(objectClass=*)", &[NO_ATTRIBUTES], 1).await;
        let why = match found {
            Ok((entries, _)) if entries.is_empty() => format!("it shows no entry below {base:?}"),
            Ok(_) => continue,
            Err(Failure::Odd(why)) => why,
            Err(failure) => return Err(failure),
        };
        return Err(Failure::Odd(format!(
            "{why}: check {option}, and what the directory lets the gateway (--ldap-bind-dn) see"
        )));
    }
    Ok(())
}

/// The entries that have a name.
#[derive(Debug)]
pub enum Named {
    /// There is none.
    Nobody,
    /// There is one.
    One(Entry),
    /// There are more.
    Several,
}

/// Finds the entry that somebody logs in with by a name.
pub async fn by_name(ldap: &mut Ldap, settings: &LdapSettings, name: &str) -> Result<Named, Failure> {
    let filter = settings.user_filter.fill(name, "");
    let place = Place::Below(&settings.base);
    let (mut found, has_more) = search(ldap, place, &filter, &of_people(settings), 2).await?;
    if found.len() > 1 || has_more {
        return Ok(Named::Several);
    }
    Ok(found.pop().map_or(Named::Nobody, Named::One))
}

/// Finds an entry by its DN, if it is one that may log in.
pub async fn by_dn(ldap: &mut Ldap, settings: &LdapSettings, dn: &str) -> Result<Option<Entry>, Failure> {
    let filter = settings.user_filter.of_anybody();
    let (mut found, _) = search(ldap, Place::At(dn), &filter, &of_people(settings), 1).await?;
    Ok(found.pop())
}

/// Finds the entries, two at most, that have an access key and may log in.
pub async fn by_access_key(
    ldap: &mut Ldap,
    settings: &LdapSettings,
    attributes: &KeyAttributes,
    id: &str,
) -> Result<Vec<Entry>, Failure> {
    let KeyAttributes { access_key, secret_key } = attributes;
    let filter = settings.user_filter.of_anybody_with(access_key, id);
    let mut wanted = of_people(settings);
    wanted.extend([&**access_key, &**secret_key]);
    let (found, _) = search(ldap, Place::Below(&settings.base), &filter, &wanted, 2).await?;
    Ok(found)
}

/// True if an entry is the only one with its name: another one would be the same person here.
pub async fn is_only(
    ldap: &mut Ldap,
    settings: &LdapSettings,
    name: &str,
    dn: &str,
) -> Result<bool, Failure> {
    let filter = format!("({}={})", settings.name_attribute, ldap_escape(name));
    let (found, has_more) = search(ldap, Place::Below(&settings.base), &filter, &[NO_ATTRIBUTES], 2).await?;
    Ok(!has_more && matches!(&found[..], [one] if folded_dn(one.dn()) == folded_dn(dn)))
}

/// Finds the groups of an entry, and those that these are in. Too many are an error: what one of
/// them denies would be missed.
pub async fn groups(
    ldap: &mut Ldap,
    settings: &LdapSettings,
    name: &str,
    dn: &str,
) -> Result<Groups, Failure> {
    let (mut all, mut seen) = (Groups::default(), HashSet::new());
    let mut filters = vec![settings.group_filter.fill(name, dn)];
    for _ in 0..=GROUP_DEPTH_MAX {
        let mut next = Vec::new();
        for some in filters.chunks(GROUPS_IN_A_SEARCH) {
            let filter = if let [one] = some { one.clone() } else { format!("(|{})", some.concat()) };
            let place = Place::Below(&settings.group_base);
            let most = DIRECTORY_GROUPS_MAX + 1;
            let (found, has_more) = search(ldap, place, &filter, &["gidNumber"], most).await?;
            for group in found {
                let folded = folded_dn(group.dn());
                if seen.insert(folded.clone()) {
                    next.push(settings.group_filter.fill(NOBODY, group.dn()));
                    all.gids.extend(group.gid());
                    all.dns.push(folded);
                }
            }
            if has_more || all.dns.len() > DIRECTORY_GROUPS_MAX {
                let why = format!(
                    "{dn:?} is in more groups than {DIRECTORY_GROUPS_MAX}, or than the directory tells"
                );
                return Err(Failure::Odd(why));
            }
        }
        if next.is_empty() {
            return Ok(all);
        }
        filters = next;
    }
    // A group that is further up might have a policy that denies something.
    Err(Failure::Odd(format!("{dn:?} is in groups that are nested deeper than {GROUP_DEPTH_MAX}")))
}
