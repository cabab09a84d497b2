use std::borrow::Cow;
use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::error::QueryError;
use crate::limits::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX};

/// The page of a list that a request asks for.
///
/// A marker is the base64url of the last key of the page before. So pages need no state, and things
/// that are added or removed between two pages cause no other thing to be repeated or left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    after: Option<String>,
    items: u32,
}

impl Default for Page {
    fn default() -> Self {
        Self { after: None, items: PAGE_ITEMS_DEFAULT }
    }
}

/// The items of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut<T> {
    /// The items, sorted by key.
    pub items: Vec<T>,
    /// The marker of the next page; `None` on the last page (`IsTruncated` is false then).
    pub marker: Option<String>,
}

impl<T> Cut<T> {
    /// True if there are more pages.
    pub const fn is_truncated(&self) -> bool {
        self.marker.is_some()
    }
}

impl Page {
    /// Makes a page from `MaxItems`, which is within its limits, and `Marker`. A text that is not a
    /// marker is refused.
    pub(crate) fn new(marker: Option<&str>, items: Option<u32>) -> Result<Self, QueryError> {
        let after = marker.map(decode).transpose()?;
        Ok(Self { after, items: items.unwrap_or(PAGE_ITEMS_DEFAULT).clamp(1, PAGE_ITEMS_MAX) })
    }

    /// Returns the key after which the page begins; `None` for the first page. It is for lists that
    /// are stored in the order of their bytes.
    pub fn after(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// Returns the largest number of items that the page may have.
    pub fn most(&self) -> usize {
        usize::try_from(self.items).unwrap_or(usize::MAX)
    }

    /// Returns a page at the same place that has no more items than `most`, and at least one.
    #[must_use]
    pub fn at_most(&self, most: usize) -> Self {
        let most = u32::try_from(most).unwrap_or(u32::MAX).max(1);
        Self { after: self.after.clone(), items: self.items.min(most) }
    }

    /// Returns the marker for the page that begins after the key `last`.
    pub fn marker(&self, last: &str) -> String {
        URL_SAFE_NO_PAD.encode(last)
    }

    /// Cuts the page out of a whole list. As in IAM, items are sorted by their keys without the
    /// case of ASCII letters, and those that are equal then with case; no two keys are equal.
    pub fn cut<T>(&self, items: impl IntoIterator<Item = T>, key: impl Fn(&T) -> Cow<'_, str>) -> Cut<T> {
        let is_after = |item: &T| {
            self.after.as_deref().is_none_or(|after| compare(&key(item), after) == Ordering::Greater)
        };
        let mut items: Vec<T> = items.into_iter().filter(is_after).collect();
        items.sort_by(|left, right| compare(&key(left), &key(right)));
        let most = self.most();
        let is_truncated = items.len() > most;
        items.truncate(most);
        let last = items.last().filter(|_| is_truncated);
        let marker = last.map(|item| self.marker(&key(item)));
        Cut { items, marker }
    }
}

fn decode(marker: &str) -> Result<String, QueryError> {
    let bytes = URL_SAFE_NO_PAD.decode(marker).map_err(|_| QueryError::invalid_marker())?;
    String::from_utf8(bytes).map_err(|_| QueryError::invalid_marker())
}

fn compare(left: &str, right: &str) -> Ordering {
    let lower = |text: &str| text.bytes().map(|byte| byte.to_ascii_lowercase()).collect::<Vec<_>>();
    lower(left).cmp(&lower(right)).then_with(|| left.cmp(right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(marker: Option<&str>, items: u32, names: &[&str]) -> Cut<String> {
        let names = names.iter().map(|name| (*name).to_owned());
        Page::new(marker, Some(items)).unwrap().cut(names, |name| name.as_str().into())
    }

    #[test]
    fn pages_are_sorted_without_case() {
        let names = ["b", "C", "a", "B", "_"];
        let first = cut(None, 2, &names);
        assert_eq!(first.items, ["_", "a"]);
        let second = cut(first.marker.as_deref(), 2, &names);
        assert_eq!((second.items, second.marker.is_some()), (vec!["B".to_owned(), "b".to_owned()], true));
        let third = cut(second.marker.as_deref(), 2, &names);
        assert_eq!((third.items, third.marker), (vec!["C".to_owned()], None));
        assert!(!cut(None, 5, &names).is_truncated());
        assert_eq!(cut(None, 1, &[]), Cut { items: vec![], marker: None });
    }

    #[test]
    fn what_goes_hides_nothing() {
        let first = cut(None, 1, &["a", "b", "c"]);
        assert_eq!(cut(first.marker.as_deref(), 9, &["b", "c"]).items, ["b", "c"]);
        assert_eq!(cut(first.marker.as_deref(), 9, &["A", "a", "aa", "b"]).items, ["aa", "b"]);
    }

    #[test]
    fn other_markers_are_refused() {
        for bad in ["*", "a", "YQ==", "_w", "YR"] {
            assert_eq!(Page::new(Some(bad), None).unwrap_err().message(), "Invalid Marker.", "{bad}");
        }
        assert_eq!(Page::new(None, None).unwrap(), Page::default());
    }

    proptest! {
        #[test]
        fn pages_have_each_item_once(names in prop::collection::btree_set(".{0,4}", 0..30), items in 1u32..7) {
            let (mut marker, mut seen) = (None::<String>, Vec::new());
            for _ in 0..=names.len() {
                let page = Page::new(marker.as_deref(), Some(items)).unwrap();
                let cut = page.cut(names.iter(), |name| name.as_str().into());
                seen.extend(cut.items);
                marker = cut.marker;
                if marker.is_none() {
                    break;
                }
            }
            prop_assert_eq!(seen.len(), names.len());
            prop_assert_eq!(seen.into_iter().collect::<std::collections::BTreeSet<_>>(), names.iter().collect());
        }
    }
}
