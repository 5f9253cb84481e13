//! Reduces paths to shapes, so that each shape is logged once, whatever ids the paths contain.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Maximum number of remembered shapes. Clients choose the paths, so shapes beyond this number are not logged.
const MAX_SHAPES: usize = 256;
/// Maximum length of a name in a path in bytes. A longer segment is treated as an id.
const MAX_NAME_BYTES: usize = 32;

/// The shapes that have occurred.
#[derive(Debug, Default)]
pub(super) struct PathShapes(Mutex<HashSet<String>>);

impl PathShapes {
    /// Records the shape of a path. Returns whether it is new.
    pub(super) fn is_new_shape(&self, path: &str) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.len() < MAX_SHAPES && known.insert(shape(path))
    }
}

/// Returns a path with `{}` instead of each id. An id is a segment that is long or contains a digit, except versions
/// such as `v1beta`.
fn shape(path: &str) -> String {
    let is_version = |segment: &str| {
        let rest = segment.strip_prefix('v').unwrap_or_default();
        rest.starts_with(|character: char| character.is_ascii_digit()) && rest.len() <= 8
    };
    let is_id = |segment: &str| {
        segment.len() > MAX_NAME_BYTES
            || (segment.bytes().any(|byte| byte.is_ascii_digit()) && !is_version(segment))
    };
    // A colon separates a method, as in `models/gemini-9:predict`.
    let named = path.split('/').map(|segment| match segment.rsplit_once(':') {
        Some((id, method)) if is_id(id) && !is_id(method) => format!("{{}}:{method}"),
        _ if is_id(segment) => "{}".to_owned(),
        _ => segment.to_owned(),
    });
    named.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_shape_is_new_once_and_shapes_are_bounded() {
        let shapes = PathShapes::default();
        for (path, is_new) in [
            ("/chat/completions", true),
            ("/chat/completions", false),
            ("/completions", true),
            ("/v1/threads/thread_1/x", true),
            ("/v1/threads/thread_2/x", false),
            ("/v1beta/models/gemini-9:predict", true),
            ("/v1beta/models/gemini-8:predict", false),
            ("/v1beta/models/gemini-8:other", true),
        ] {
            assert_eq!(shapes.is_new_shape(path), is_new, "{path}");
        }
        let letters =
            |number: usize| number.to_string().bytes().map(|digit| (digit + 49) as char).collect::<String>();
        assert!((0..MAX_SHAPES).filter(|number| shapes.is_new_shape(&letters(*number))).count() < MAX_SHAPES);
        assert!(!shapes.is_new_shape("/another"));
    }
}
