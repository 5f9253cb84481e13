//! The name of this machine.

use std::fs;

/// Returns the host name of this machine, or `unknown`.
pub(crate) fn machine_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "unknown".to_owned(),
        name => name.to_owned(),
    }
}
