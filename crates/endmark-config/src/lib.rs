//! Reads the configuration in layers, and keeps the origin of each value.

mod budget;
mod environment;
mod error;
mod file;
mod gateway;
mod keys;
mod kinds;
mod layers;
mod listening;
mod network;
mod outputs;
mod prices;
mod provenance;
mod secret_source;
mod settings;
mod show;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use endmark_process::{MAX_WRITTEN_BYTES, read_regular_text};
use endmark_store::StoreLocation;

use endmark_setting::RawSetting;
pub use environment::{
    ADMIN_KEY as ADMIN_KEY_VARIABLE, Environment, LOG as LOG_VARIABLE, UPSTREAMS as UPSTREAM_VARIABLES,
};
pub use error::ConfigError;
pub use gateway::{models, to_gateway};
use layers::Layers;
pub use layers::parse_base_url;
pub use listening::reachable_address;
pub use network::{client_upstream, client_upstream_at};
pub use provenance::{Origin, Provenance};
pub use secret_source::SecretSource;
pub use settings::{Runs, Settings, Upstream};
pub use show::{KeyListing, all_values};

/// The file name of the default store.
const STORE_FILE: &str = "endmark.db";

/// The path of the default store as the documentation shows it. The actual folder depends on the environment.
pub const DOCUMENTED_STORE_PATH: &str = "~/.local/state/endmark/endmark.db";

/// The effective configuration.
#[derive(Debug)]
pub struct EffectiveConfig {
    /// The settings.
    pub settings: Settings,
    /// The origin of each value.
    pub provenance: Provenance,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    /// Warnings about possible mistakes.
    pub warnings: Vec<String>,
}

/// A key set on the command line.
#[derive(Debug, Clone)]
pub struct Override {
    /// The flag, such as `--listen`.
    pub flag: String,
    /// The key's full name.
    pub key: String,
    /// The value, as written.
    pub value: String,
}

impl Override {
    /// Parses `KEY=VALUE`, the argument of `--set`.
    pub fn parse(assignment: &str) -> Result<Self, ConfigError> {
        let (key, value) =
            assignment.split_once('=').ok_or_else(|| ConfigError::NotAnAssignment(assignment.to_owned()))?;
        Ok(Self { flag: "--set".to_owned(), key: key.trim().to_owned(), value: value.to_owned() })
    }
}

/// A path that means: read no configuration file.
const NO_FILE: &str = "/dev/null";

/// Reads the configuration from the defaults, the file, the environment and the flags, in this order.
pub fn load(
    environment: &Environment,
    named: Option<&Path>,
    overrides: &[Override],
) -> Result<EffectiveConfig, ConfigError> {
    let (effective, faults) = examine(environment, named, overrides)?;
    ConfigError::combine(faults)?;
    Ok(effective)
}

/// Reads as much of the configuration as possible. Returns it with all errors, except those that follow from others.
///
/// # Errors
/// [`ConfigError`] if the file cannot be read or is not TOML.
pub fn examine(
    environment: &Environment,
    named: Option<&Path>,
    overrides: &[Override],
) -> Result<(EffectiveConfig, Vec<ConfigError>), ConfigError> {
    let file = find_file(environment, named);
    let mut layers = Layers::default();
    layers.settings.files.store = default_store(environment);
    layers.home = environment.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let mut faults = Vec::new();
    if let Some(path) = &file {
        let text = if path == Path::new(NO_FILE) {
            Ok(String::new())
        } else {
            read_regular_text(path, MAX_WRITTEN_BYTES)
        };
        let text = text.map_err(|source| ConfigError::Read { path: path.clone(), source })?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        for assignment in file::parse_assignments(path, &text)? {
            let origin = Origin::File { path: path.clone(), line: assignment.line };
            faults.extend(layers.set(&assignment.name, &assignment.given, origin, folder).err());
        }
    }
    let mut warnings = layers.set_environment(environment, &mut faults);
    for Override { flag, key, value } in overrides {
        let given = RawSetting::Untyped(value.clone());
        faults.extend(layers.set(key, &given, Origin::Flag(flag.clone()), None).err());
    }
    let mut found = layers.finish(environment);
    found.retain(|fault| !faults.iter().any(|cause| cause.may_cause(fault)));
    faults.append(&mut found);
    if layers.settings.files.store == StoreLocation::sqlite(STORE_FILE) {
        warnings.extend(missing_home_warning(environment, &layers.provenance));
    }
    layers.settings.files.store = layers.settings.files.store.absolute();
    Ok((EffectiveConfig { settings: layers.settings, provenance: layers.provenance, file, warnings }, faults))
}

/// Returns the named configuration file, which must exist, or the first default file that exists.
fn find_file(environment: &Environment, named: Option<&Path>) -> Option<PathBuf> {
    named
        .map(Path::to_owned)
        .or_else(|| environment.get(environment::CONFIG_FILE_VARIABLE).map(PathBuf::from))
        .or_else(|| search_paths(environment).into_iter().find(|path| exists(path)))
}

/// Whether anything except a folder exists at this path. Pipes and devices count, so that reading them fails visibly.
fn exists(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_dir())
}

/// Returns the default store, which is in the user's state folder (XDG Base Directory). If there is no home folder, the
/// store is in the current folder.
fn default_store(environment: &Environment) -> StoreLocation {
    let absolute = |name| environment.get(name).map(Path::new).filter(|path| path.is_absolute());
    let folder = absolute("XDG_STATE_HOME")
        .map(Path::to_owned)
        .or_else(|| absolute("HOME").map(|home| home.join(".local").join("state")));
    folder.map_or_else(
        || StoreLocation::sqlite(STORE_FILE),
        |folder| StoreLocation::in_own_folder(folder.join("endmark").join(STORE_FILE)),
    )
}

/// Returns a warning if the store is in the current folder because there is no home folder.
fn missing_home_warning(environment: &Environment, provenance: &Provenance) -> Option<String> {
    let is_configured = provenance.origin("store") != Origin::Default;
    (!is_configured && default_store(environment) == StoreLocation::sqlite(STORE_FILE)).then(|| {
        format!(
            "neither `XDG_STATE_HOME` nor `HOME` names a folder, so the store is `{STORE_FILE}` in the current one; `--store` names another"
        )
    })
}

/// Returns the default paths of the configuration file, in the order in which they are tried.
pub fn search_paths(environment: &Environment) -> Vec<PathBuf> {
    let folder = environment
        .get("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| environment.get("HOME").map(|home| Path::new(home).join(".config")));
    let mut paths = vec![PathBuf::from("endmark.toml")];
    paths.extend(folder.map(|folder| folder.join("endmark").join("endmark.toml")));
    paths
}
