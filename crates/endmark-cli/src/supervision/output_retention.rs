//! Deletes agents' output after the retention period of the store.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Removes run folders that were last written more than `keep` ago, and returns their number. Other folders stay.
pub(super) fn delete_old_folders(beside_store: &Path, keep: Duration, now: SystemTime) -> usize {
    let Ok(entries) = fs::read_dir(beside_store) else { return 0 };
    let is_old = |path: &Path| {
        let written = fs::metadata(path).and_then(|folder| folder.modified());
        written.is_ok_and(|written| now.duration_since(written).is_ok_and(|age| age > keep))
    };
    let folders = entries.filter_map(Result::ok).map(|entry| entry.path());
    let old = folders.filter(|path| is_run(path) && path.is_dir() && is_old(path));
    // The next run tries again to remove a folder that cannot be removed now.
    old.filter(|path| fs::remove_dir_all(path).is_ok()).count()
}

/// Whether the path has the name of a run: `run_` and 12 hexadecimal digits.
fn is_run(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("run_"));
    name.is_some_and(|id| id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_runs_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["run_0123456789ab", "run_short", "notes"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("1.out"), "said").unwrap();
        }
        let (day, now) = (Duration::from_hours(24), SystemTime::now());
        assert_eq!(delete_old_folders(folder.path(), day, now), 0);
        assert_eq!(delete_old_folders(folder.path(), day, now + 2 * day), 1);
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["notes", "run_short"]);
        assert_eq!(delete_old_folders(&folder.path().join("nowhere"), day, now), 0);
    }
}
