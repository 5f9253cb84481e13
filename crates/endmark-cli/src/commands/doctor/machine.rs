//! Checks the machine: disk space, file permissions and the clock.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use endmark_config::EffectiveConfig;
use endmark_failure::Check;
use endmark_gateway::ResumeMode;

/// Minimum free space in bytes: enough for the ledger of several million calls, and its journal.
const MIN_FREE_BYTES: u64 = 1 << 30;

/// 2026-01-01, as a time since 1970. An earlier clock was never set.
const EARLIEST_PLAUSIBLE_TIME: Duration = Duration::from_hours(490_896);

/// Runs all of these checks.
pub(super) fn checks(effective: &EffectiveConfig) -> Vec<Check> {
    let store = &effective.settings.files.store;
    let (path, key) = (store.path(), if store.postgres().is_some() { "journal" } else { "store" });
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut checks = Vec::new();
    if folder.is_dir() {
        checks.push(check_writable(folder, key));
        checks.extend(check_free_space(folder));
    }
    checks.extend(check_permissions(path));
    if let Some(file) = &effective.file {
        checks.extend(check_file_permissions(effective, file));
    }
    checks.push(check_clock(SystemTime::now()));
    checks.push(mode_check(
        effective.settings.gateway.resume.mode,
        effective.settings.gateway.store_policy.keep_days.into(),
    ));
    checks
}

fn check_writable(folder: &Path, key: &str) -> Check {
    let shown = folder.display();
    match tempfile::NamedTempFile::new_in(folder) {
        Ok(_) => Check::passed("store.folder", format!("`{shown}` is writable")),
        Err(error) => Check::failed(
            "store.folder",
            format!("`{shown}` is not writable: {error}"),
            format!(
                "Give the user of `endmark serve` write permission there, or set another file with `{key}`."
            ),
        ),
    }
}

/// Checks the free space. Returns `None` if the system does not report it.
fn check_free_space(folder: &Path) -> Option<Check> {
    let volume = rustix::fs::statvfs(folder).ok()?;
    let free = volume.f_bavail.saturating_mul(volume.f_frsize);
    let (name, shown) =
        ("store.room", format!("{} MB are free on the store's file system", free / 1_000_000));
    Some(if free >= MIN_FREE_BYTES {
        Check::passed(name, shown)
    } else {
        Check::failed(
            name,
            shown,
            "Free some space, lower `store_policy.keep_days`, or move the store: when the disk is full, replies continue and \
             records wait.",
        )
    })
}

/// Checks whether other users can read the store. `endmark serve` restricts its permissions.
fn check_permissions(path: &Path) -> Option<Check> {
    let mode = permission_bits(path)?;
    Some(if mode % 0o100 == 0 {
        Check::passed("store.rights", format!("only the owner can access `{}`", path.display()))
    } else {
        Check::failed(
            "store.rights",
            format!("`{}` can be accessed by other users (mode {mode:03o})", path.display()),
            format!("Run `chmod 600 {}`, or restart `endmark serve`, which does the same.", path.display()),
        )
    })
}

/// Checks whether other users can read a configuration that contains keys.
fn check_file_permissions(effective: &EffectiveConfig, file: &Path) -> Option<Check> {
    let settings = &effective.settings;
    let holds_keys = settings.has_inline_admin_key()
        || settings.upstreams.iter().any(endmark_config::Upstream::has_inline_key);
    let mode = permission_bits(file).filter(|_| holds_keys)?;
    Some(if mode % 0o100 == 0 {
        Check::passed("configuration.rights", "the file contains keys, and only its owner can access it")
    } else {
        Check::failed(
            "configuration.rights",
            format!("`{}` contains keys, and other users can access it (mode {mode:03o})", file.display()),
            format!(
                "Run `chmod 600 {}`, or use environment variables: `api_key = {{ env = \"NAME\" }}`.",
                file.display()
            ),
        )
    })
}

fn permission_bits(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    Some(path.metadata().ok()?.permissions().mode() & 0o777)
}

fn check_clock(now: SystemTime) -> Check {
    let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    if since_epoch >= EARLIEST_PLAUSIBLE_TIME {
        Check::passed("clock", "the system's clock is set")
    } else {
        Check::failed(
            "clock",
            "the system's clock is before 2026: certificates are rejected, and records have wrong dates",
            "Set the clock, or enable NTP (`timedatectl set-ntp true`).",
        )
    }
}

fn mode_check(mode: ResumeMode, keep_days: u64) -> Check {
    let does = match mode {
        ResumeMode::Auto => "cut replies are resumed unless the client wanted the cut",
        ResumeMode::On => "all cut replies are resumed",
        ResumeMode::Warn => {
            "cut replies are detected, but not resumed; `endmark report` estimates the cost of resuming"
        }
        ResumeMode::Off => "replies are not checked",
    };
    let kept = match keep_days {
        0 => "records are kept forever".to_owned(),
        days => format!("records are kept for {days} days"),
    };
    Check::passed("mode", format!("`{}`: {does}; {kept}", mode.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unset_clock_is_reported() {
        assert!(!check_clock(UNIX_EPOCH).is_ok);
        assert!(!check_clock(UNIX_EPOCH + EARLIEST_PLAUSIBLE_TIME - Duration::from_secs(1)).is_ok);
        assert!(check_clock(SystemTime::now()).is_ok);
    }

    #[test]
    fn world_readable_files_are_reported_with_the_fix() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(check_permissions(file.path()).unwrap().is_ok);
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
        let check = check_permissions(file.path()).unwrap();
        assert!(!check.is_ok && check.hint.unwrap().contains("chmod 600"));
    }
}
