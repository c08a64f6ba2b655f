//! Static builds for musl, whose bytes depend on the sources and the tools only.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::platform::Platform;
use super::release::Release;
use super::tools;
use crate::workspace;

/// Options of the linker, which is LLVM's. Packed relocations save 347 kB of 12.9 MB. Folding equal functions
/// (`--icf=all`) would save 116 kB more, but the C libraries may compare addresses of functions.
const LINKER_OPTIONS: [&str; 3] = ["-O2", "-zpack-relative-relocs", "--build-id=none"];

/// Options of the C compiler: no exception passes through C, so that its 100 kB of unwind tables are not used. Zig drops them
/// only when both are given.
const C_OPTIONS: &str = "-fno-asynchronous-unwind-tables -fno-unwind-tables";

/// Builds linerate for `platform` below `target_directory`; returns the program.
pub(super) fn build(platform: Platform, release: &Release, target_directory: &Path) -> Result<PathBuf> {
    let triple = platform.triple();
    add_target(triple)?;
    let compiler = tools::cross_compiler(platform.processor())?;
    println!("building {triple} below {}", target_directory.display());
    let suffix = triple.replace('-', "_");
    let mut cargo = Command::new(workspace::cargo());
    cargo
        .args(["build", "--quiet", "--profile=dist", "--locked", "--package=linerate-cli", "--target", triple])
        .arg("--target-dir")
        .arg(target_directory)
        .current_dir(workspace::root())
        .env(format!("CC_{suffix}"), &compiler.compiler)
        .env(format!("AR_{suffix}"), &compiler.archiver)
        .env(format!("CFLAGS_{suffix}"), C_OPTIONS)
        .env(format!("CARGO_TARGET_{}_LINKER", suffix.to_uppercase()), "rust-lld")
        .env("CARGO_ENCODED_RUSTFLAGS", rust_flags()?.join("\x1f"))
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("RUSTFLAGS");
    tools::run(&mut cargo)?;
    Ok(target_directory.join(triple).join("dist/linerate"))
}

/// Adds the target to the toolchain, where rustup manages it.
fn add_target(triple: &str) -> Result<()> {
    let mut rustc = Command::new("rustc");
    let libraries = workspace::output_of(rustc.args(["--print", "target-libdir", "--target", triple]))?;
    if Path::new(libraries.trim()).exists() {
        return Ok(());
    }
    tools::run(Command::new("rustup").args(["target", "add", triple]))
        .with_context(|| format!("the toolchain has no standard library for {triple}"))
}

/// Flags that keep directories of this machine out of the program, and make it small.
fn rust_flags() -> Result<Vec<String>> {
    let cargo_home =
        std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
    let cargo_home = cargo_home.context("neither CARGO_HOME nor HOME is set")?;
    let root = workspace::root();
    let remapped = [(cargo_home, "/cargo"), (root.display().to_string(), "/linerate")];
    let mut flags: Vec<String> = remapped.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect();
    flags.extend(LINKER_OPTIONS.map(|option| format!("-Clink-arg={option}")));
    Ok(flags)
}
