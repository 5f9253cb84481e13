//! Builds the table of models from the newest versions of two Python packages. Needs Python 3 with pip.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const EXTRACT_SCRIPT: &str = "xtask/models/extract.py";
const MODEL_TABLE: &str = "crates/endmark-context/data/models.json";
/// The package with prices, which is installed. From the other package (40 MB) only one file is extracted.
const PRICE_PACKAGE: &str = "genai-prices";
const LIMIT_PACKAGE: &str = "litellm";
const LIMITS_FILE: &str = "litellm/model_prices_and_context_window_backup.json";

/// Writes the table. Review its changes before you commit it.
pub(crate) fn write_table() -> Result<(), String> {
    let folder = env::temp_dir().join(format!("endmark-models-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let made = make_package(&folder);
    // If this fails, the files stay in the folder for temporary files.
    let _ = fs::remove_dir_all(&folder);
    made
}

fn make_package(folder: &Path) -> Result<(), String> {
    let environment = folder.join("venv");
    run("python3", [OsStr::new("-m"), OsStr::new("venv"), environment.as_os_str()])?;
    let python = environment.join("bin/python");
    let pip = |arguments: &[&OsStr]| {
        let begin = ["-m", "pip", "--quiet", "--disable-pip-version-check"].map(OsStr::new);
        run(&python, begin.iter().chain(arguments))
    };
    pip(&[OsStr::new("install"), OsStr::new(PRICE_PACKAGE)])?;
    pip(&["download", "--no-deps", "--dest"]
        .map(OsStr::new)
        .into_iter()
        .chain([folder.as_os_str(), OsStr::new(LIMIT_PACKAGE)])
        .collect::<Vec<_>>())?;
    let wheel = find_wheel(folder)?;
    let version = wheel_version(&wheel)?;
    run(
        &python,
        [OsStr::new("-m"), OsStr::new("zipfile"), OsStr::new("-e"), wheel.as_os_str(), folder.as_os_str()],
    )?;
    let limits = folder.join(LIMITS_FILE);
    run(
        &python,
        [OsStr::new(EXTRACT_SCRIPT), limits.as_os_str(), OsStr::new(&version), OsStr::new(MODEL_TABLE)],
    )
}

fn run<A: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
) -> Result<(), String> {
    let name = program.as_ref().to_string_lossy().into_owned();
    let status = Command::new(program).args(arguments).status();
    match status.map_err(|error| format!("cannot run {name}: {error}"))? {
        status if status.success() => Ok(()),
        status => Err(format!("{name} failed: {status}")),
    }
}

fn find_wheel(folder: &Path) -> Result<PathBuf, String> {
    let entries =
        fs::read_dir(folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    files
        .find(|path| path.extension() == Some(OsStr::new("whl")))
        .ok_or_else(|| format!("pip downloaded no wheel of {LIMIT_PACKAGE}"))
}

/// Returns the version in a wheel's name, `NAME-VERSION-….whl`.
fn wheel_version(wheel: &Path) -> Result<String, String> {
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    name.split('-').nth(1).map(str::to_owned).ok_or_else(|| format!("{name} has no version in its name"))
}
