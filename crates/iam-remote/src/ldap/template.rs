//! Filters of searches, with places for names.

use ldap3::ldap_escape;

/// The place of the name that somebody logs in with.
pub const USER: &str = "{user}";
/// The place of the DN of an entry or a group.
pub const DN: &str = "{dn}";

/// A filter with places. What is put there is escaped, so that it is compared, and never read as a
/// part of the filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Box<str>);

impl Template {
    /// Checks that the text is a filter (RFC 4515), and has one of these places.
    pub fn new(text: &str, places: &[&str]) -> Result<Self, String> {
        if !places.iter().any(|place| text.contains(place)) {
            return Err(format!("the filter has no {}", places.join(" and no ")));
        }
        let this = Self(text.into());
        let filled = this.fill("x", "cn=x");
        if filled.contains(['{', '}']) {
            return Err(format!("the filter has a {{}} that is none of {}", places.join(", ")));
        }
        // As somebody is looked for whose name is not known.
        let is_one = |text: &str| ldap3::parse_filter(text).is_ok();
        if is_one(&filled) && is_one(&this.of_anybody()) {
            return Ok(this);
        }
        Err("it is no filter of LDAP, such as (uid={user})".to_owned())
    }

    /// Returns the filter for a name and a DN.
    pub fn fill(&self, user: &str, dn: &str) -> String {
        // One after the other would take what is put in for a place.
        let mut out = String::with_capacity(self.0.len() + user.len() + dn.len());
        let mut rest = &*self.0;
        while let Some(at) = rest.find('{') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix(USER) {
                out.push_str(&ldap_escape(user));
                rest = after;
            } else if let Some(after) = rest.strip_prefix(DN) {
                out.push_str(&ldap_escape(dn));
                rest = after;
            } else {
                out.push('{');
                rest = &rest[1..];
            }
        }
        out + rest
    }

    /// Returns the filter for whoever has a value of an attribute.
    pub fn of_anybody_with(&self, attribute: &str, value: &str) -> String {
        let (anybody, value) = (self.of_anybody(), ldap_escape(value));
        if anybody.starts_with('(') {
            format!("(&{anybody}({attribute}={value}))")
        } else {
            format!("(&({anybody})({attribute}={value}))")
        }
    }

    /// Returns the filter for anybody: whoever has a name that may be put there.
    pub fn of_anybody(&self) -> String {
        self.0.replace(USER, "*")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Result<Template, String> {
        Template::new(text, &[USER])
    }

    #[test]
    fn names_are_only_compared() {
        let filter = user("(&(objectClass=person)(uid={user}))").unwrap();
        assert_eq!(filter.fill("ann", ""), "(&(objectClass=person)(uid=ann))");
        assert_eq!(filter.fill("*", ""), "(&(objectClass=person)(uid=\\2a))");
        let name = "ann)(|(uid=*))\\\0{dn}";
        assert_eq!(
            filter.fill(name, "cn=x"),
            "(&(objectClass=person)(uid=ann\\29\\28|\\28uid=\\2a\\29\\29\\5c\\00{dn}))"
        );
        assert!(ldap3::parse_filter(filter.fill(name, "")).is_ok());
        assert_eq!(filter.of_anybody(), "(&(objectClass=person)(uid=*))");
    }

    #[test]
    fn values_of_attributes_are_only_compared() {
        let filter = user("(uid={user})").unwrap();
        assert_eq!(filter.of_anybody_with("key", "AKIA"), "(&(uid=*)(key=AKIA))");
        let odd = filter.of_anybody_with("key", "*)(uid=ann)\\\0");
        assert_eq!(odd, "(&(uid=*)(key=\\2a\\29\\28uid=ann\\29\\5c\\00))");
        assert!(ldap3::parse_filter(odd).is_ok());
        for text in ["(uid={user})", "uid={user}"] {
            let Ok(filter) = user(text) else { continue };
            assert!(ldap3::parse_filter(filter.of_anybody_with("key", "x")).is_ok(), "{text}");
        }
    }

    #[test]
    fn several_places() {
        let filter = Template::new("(|(member={dn})(memberUid={user}))", &[DN, USER]).unwrap();
        assert_eq!(filter.fill("a*", "cn=(b)"), "(|(member=cn=\\28b\\29)(memberUid=a\\2a))");
    }

    #[test]
    fn what_is_no_filter() {
        for text in ["", "uid={user", "(uid=ann)", "(uid={user}", "(uid={name})(cn={user})", "(uid={user})x"]
        {
            assert!(user(text).is_err(), "{text}");
        }
        assert!(user("(userPrincipalName={user}@lab.example)").is_ok());
        assert!(user("(&(uid={user})(!(userAccountControl:1.2.840.113556.1.4.803:=2)))").is_ok());
    }
}
