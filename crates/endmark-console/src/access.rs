//! Who may read what is remembered: whoever is on the machine itself, or has the admin key.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};

use crate::answer::Failure;

/// Who may read. There is no way from the outside in without a key.
pub(crate) enum Access {
    /// Everybody who reaches the listener, which only its own machine does.
    Open,
    /// Whoever has the key with this hash.
    Key([u8; 32]),
    /// Nobody: it can be reached from outside, and there is no key.
    Closed,
}

impl Access {
    /// With the admin key where one is configured; else by whether only the machine itself reaches the listener.
    pub(crate) fn new(admin_key: Option<&str>, is_local: bool) -> Self {
        match admin_key {
            Some(key) => Self::Key(hash(key)),
            None if is_local => Self::Open,
            None => Self::Closed,
        }
    }

    /// Lets a request in, or says why not.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> Result<(), Failure> {
        match self {
            Self::Open => Ok(()),
            Self::Closed => Err(Failure::Closed),
            Self::Key(expected) => {
                // Hashes are compared: how long that takes says nothing about the key.
                let is_it = bearer(headers).is_some_and(|key| hash(key) == *expected);
                if is_it { Ok(()) } else { Err(Failure::Unauthorized) }
            }
        }
    }
}

/// The key in `Authorization: Bearer KEY`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn admits(access: &Access, authorization: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        access.admit(&headers).is_ok()
    }

    #[test]
    fn nobody_reads_from_outside_without_the_admin_key() {
        assert!(admits(&Access::new(None, true), None));
        let closed = Access::new(None, false);
        assert!(
            !admits(&closed, None) && !admits(&closed, Some("Bearer ")) && !admits(&closed, Some("Bearer x"))
        );
        for is_local in [true, false] {
            let access = Access::new(Some("the admin key"), is_local);
            assert!(
                admits(&access, Some("Bearer the admin key"))
                    && admits(&access, Some("bearer  the admin key"))
            );
            for wrong in
                [None, Some(""), Some("Bearer "), Some("Bearer the admin ke"), Some("Basic the admin key")]
            {
                assert!(!admits(&access, wrong), "{wrong:?}");
            }
        }
    }
}
