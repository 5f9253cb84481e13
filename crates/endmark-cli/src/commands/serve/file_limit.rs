//! The limit of open files: each client connection needs one, and so does each upstream call.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files other than connections: the store, the log, and idle upstream connections.
const NON_CONNECTION_FILES: u64 = 256;

/// Raises the limit of open files to the number that connections and requests need. Returns a warning if that is not
/// allowed.
pub(super) fn raise_limit(connections: usize, requests: usize) -> Option<String> {
    let clients = u64::try_from(connections.saturating_add(requests)).unwrap_or(u64::MAX);
    let needed = clients.saturating_add(NON_CONNECTION_FILES);
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(u64::MAX);
    if current >= needed {
        return None;
    }
    let allowed = limit.maximum.unwrap_or(u64::MAX).min(needed);
    let raised = Rlimit { current: Some(allowed), maximum: limit.maximum };
    let now = if setrlimit(Resource::Nofile, raised).is_ok() { allowed } else { current };
    (now < needed).then(|| {
        format!(
            "[limits] connections and requests may need {needed} open files, but only {now} are allowed: raise the \
             limit (ulimit -n), or lower these"
        )
    })
}
