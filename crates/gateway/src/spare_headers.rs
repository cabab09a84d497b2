//! Memory of header maps that is used again.
//!
//! A map with the headers of an answer takes two allocations, one of them too large for the C
//! library's lists of free memory. The header map of the request, which is free once the request
//! was answered, is as large.

use std::cell::Cell;

use http::HeaderMap;

use crate::limits::SPARE_HEADERS_MAX;

thread_local! {
    static SPARE: Cell<Option<HeaderMap>> = const { Cell::new(None) };
}

/// Returns an empty map, with this thread's spare memory if there is any.
pub fn take() -> HeaderMap {
    SPARE.take().unwrap_or_default()
}

/// Keeps the memory of a map for the next [`take`] on this thread.
pub fn keep(mut headers: HeaderMap) {
    if headers.capacity() <= SPARE_HEADERS_MAX {
        headers.clear();
        SPARE.set(Some(headers));
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn memory_is_used_again_and_headers_are_not() {
        let mut headers = HeaderMap::with_capacity(12);
        headers.append("a", HeaderValue::from_static("1"));
        headers.append("a", HeaderValue::from_static("2"));
        let capacity = headers.capacity();
        keep(headers);
        let again = take();
        assert!(again.is_empty() && again.get("a").is_none());
        assert_eq!((again.capacity(), take().capacity()), (capacity, 0));
        keep(HeaderMap::with_capacity(1000));
        assert_eq!(take().capacity(), 0);
    }
}
