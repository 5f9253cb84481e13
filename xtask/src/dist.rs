//! Builds and packs the published programs.
//!
//! The programs are static, so they run with any C library and in an empty container. `cargo-zigbuild` links
//! them for both architectures, and `xtask/dist/pack.py` packs them. Missing tools are installed first.

mod tools;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

pub(crate) const USAGE: &str = "usage: cargo xtask dist [--out FOLDER] [--profile NAME] [--target TRIPLE]…, or [--built TRIPLE=PROGRAM]…";

const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];
const EPOCH_VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// A built library for another language. It is linked to glibc, like nearly every Python and Node.
struct Library {
    /// The option of `pack.py` for this library.
    option: &'static str,
    /// The target triple of the program in the same package, and the path of the library.
    built_path: String,
}

/// The libraries: the option of `pack.py`, the package in `bindings/`, and the built file.
const LIBRARIES: [(&str, &str, &str); 2] =
    [("--module", "endmark-python", "lib_native.so"), ("--addon", "endmark-node", "libendmark_node.so")];

/// The parsed command-line options.
struct BuildRequest {
    output_folder: PathBuf,
    profile: String,
    targets: Vec<String>,
    /// Programs that are already built, which need no build.
    built: Vec<String>,
    /// The libraries for Python and Node. Empty if the programs are already built.
    libraries: Vec<Library>,
}

/// Builds for all targets, and packs. Packed files get the time of the newest commit.
pub(crate) fn build_and_pack(arguments: &[String]) -> Result<(), String> {
    let mut wanted = parse_options(arguments)?;
    let root = env::current_dir().map_err(|error| format!("cannot find the current folder: {error}"))?;
    let has_own = |names: &[String]| names.iter().any(|name| name.starts_with(env::consts::ARCH));
    if !has_own(&wanted.built) && (!wanted.built.is_empty() || !has_own(&wanted.targets)) {
        // Report this before the build, which takes a quarter of an hour.
        return Err(format!(
            "packing needs a program for this machine ({}), which prints the manual: add it with `--target` or `--built`",
            env::consts::ARCH
        ));
    }
    if wanted.built.is_empty() {
        let path = tools::make_available(&root, &wanted.targets)?;
        for target in &wanted.targets {
            let program = build(&root, target, &wanted.profile, &path)?;
            wanted.built.push(format!("{target}={}", program.display()));
            for (option, package, file) in LIBRARIES {
                let library = build_library(&root, target, package, &path)?.join(file);
                wanted
                    .libraries
                    .push(Library { option, built_path: format!("{target}={}", library.display()) });
            }
        }
        let mut compile = Command::new("node");
        compile.args(["bindings/node/build.mjs", "--sources"]);
        run(compile)?;
    }
    let mut pack = Command::new("python3");
    pack.arg("xtask/dist/pack.py")
        .arg("--out")
        .arg(&wanted.output_folder)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    for program in &wanted.built {
        pack.args(["--target", program]);
    }
    for library in &wanted.libraries {
        pack.args([library.option, &library.built_path]);
    }
    if env::var_os(EPOCH_VARIABLE).is_none() {
        pack.env(EPOCH_VARIABLE, newest_commit()?);
    }
    run(pack)
}

fn parse_options(arguments: &[String]) -> Result<BuildRequest, String> {
    let mut wanted = BuildRequest {
        output_folder: PathBuf::from("target/dist"),
        profile: "dist".to_owned(),
        targets: Vec::new(),
        built: Vec::new(),
        libraries: Vec::new(),
    };
    let mut arguments = arguments.iter();
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?.clone();
        match name.as_str() {
            "--out" => wanted.output_folder = value.into(),
            "--profile" => wanted.profile = value,
            "--target" => wanted.targets.push(value),
            "--built" => wanted.built.push(value),
            _ => return Err(USAGE.to_owned()),
        }
    }
    if wanted.targets.is_empty() {
        wanted.targets = TARGETS.map(str::to_owned).to_vec();
    }
    Ok(wanted)
}

/// Builds the program, and returns its path.
fn build(root: &Path, target: &str, profile: &str, path: &OsStr) -> Result<PathBuf, String> {
    let mut build = zigbuild(root, path)?;
    build.args(["--package", "endmark-cli", "--bin", "endmark", "--profile", profile, "--target", target]);
    build.args(["--config", &format!("profile.{profile}.strip=\"symbols\"")]);
    run(build)?;
    Ok(build_folder(root).join(target).join(profile).join("endmark"))
}

/// Builds a library for the architecture of this target. Returns the folder with the library.
fn build_library(root: &Path, target: &str, package: &str, path: &OsStr) -> Result<PathBuf, String> {
    let target = tools::with_glibc(target);
    let mut build = zigbuild(root, path)?;
    build.args(["--manifest-path", "bindings/Cargo.toml", "--package", package, "--release"]);
    build.args(["--target", &format!("{target}.{}", tools::OLDEST_GLIBC)]);
    // Python's module supports all Python versions, so the build must not inspect an installed one.
    build.env("PYO3_NO_PYTHON", "1");
    run(build)?;
    Ok(build_folder(root).join(target).join("release"))
}

/// Returns the folder for builds. It is separate, because the different flags would recompile everything in
/// the default folder.
fn build_folder(root: &Path) -> PathBuf {
    root.join("target/dist-build")
}

/// Returns a build command that embeds no local paths, so that all machines build identical files.
fn zigbuild(root: &Path, path: &OsStr) -> Result<Command, String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let home = home.ok_or("set CARGO_HOME or HOME, so that cargo's sources can be found")?;
    let mut flags = OsString::from("--remap-path-prefix=");
    flags.push(&home);
    flags.push("=/cargo --remap-path-prefix=");
    flags.push(root);
    flags.push("=/endmark");
    let folder = build_folder(root);
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let mut build = Command::new("cargo");
    build.args(["zigbuild", "--locked", "--target-dir"]).arg(&folder);
    build.env("RUSTFLAGS", flags).env("PATH", path);
    Ok(build)
}

fn newest_commit() -> Result<String, String> {
    let output = Command::new("git").args(["-c", "safe.directory=*", "log", "-1", "--format=%ct"]).output();
    let output = output.map_err(|error| format!("cannot run git ({error}): set {EPOCH_VARIABLE}"))?;
    let time = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if time.is_empty() { Err(format!("git has no commit: set {EPOCH_VARIABLE}")) } else { Ok(time) }
}

fn run(mut command: Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("cannot run `{name}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{name}` failed ({status})")) }
}
