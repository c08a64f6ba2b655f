//! Programs that make packages: installed below target/tools, or named with their purpose.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace;

/// Version of Zig, whose clang compiles the C libraries for each platform against musl's headers.
const ZIG: &str = "ziglang==0.13.0";
/// Version of the writer of the software bill of materials.
const CYCLONEDX: &str = "cargo-cyclonedx@0.5.9";

/// Programs of distributions: name, purpose, Debian's package.
const PROGRAMS: [(&str, &str, &str); 9] = [
    ("dh", "builds .deb", "debhelper"),
    ("dpkg-deb", "builds .deb", "dpkg"),
    ("rpmbuild", "builds .rpm", "rpm"),
    ("lintian", "checks .deb", "lintian"),
    ("rpmlint", "checks .rpm", "rpmlint"),
    ("mmdebstrap", "makes the systems that packages are installed in", "mmdebstrap"),
    ("systemd-analyze", "checks the units", "systemd"),
    ("umoci", "unpacks the container image", "umoci"),
    ("qemu-aarch64-static", "runs programs for aarch64", "qemu-user-static"),
];

/// Runs a program to its end.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status();
    if status.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        let row = PROGRAMS.iter().find(|(program, ..)| *program == name);
        let (_, purpose, package) = row.with_context(|| format!("{name} is not installed"))?;
        bail!("{name}, which {purpose}, is not installed: apt-get install {package}");
    }
    let status = status.with_context(|| format!("cannot start {name}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

fn directory() -> PathBuf {
    workspace::root().join("target/tools")
}

/// C compiler for a processor's musl, and its archiver.
pub(super) struct CrossCompiler {
    pub(super) compiler: PathBuf,
    pub(super) archiver: PathBuf,
}

/// Returns Zig's C compiler for `processor`, installed at first.
pub(super) fn cross_compiler(processor: &str) -> Result<CrossCompiler> {
    let tools = directory();
    let zig = tools.join("zig");
    if !zig.join("installed").exists() {
        println!("installing {ZIG} below target/tools");
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&zig))?;
        let mut pip = Command::new(zig.join("bin/pip"));
        run(pip.args(["install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", ZIG]))?;
        std::fs::write(zig.join("installed"), ZIG).context("cannot write to target/tools")?;
    }
    let compiler = write_script(&tools.join(format!("cc-{processor}")), &compiler_script(processor))?;
    let archiver = write_script(&tools.join("ar"), &script("ar", "\"$@\""))?;
    Ok(CrossCompiler { compiler, archiver })
}

/// Script that runs Zig's `action` from the directory of the script.
fn script(action: &str, arguments: &str) -> String {
    format!(
        "#!/bin/bash\ntools=$(dirname \"$0\")\nexport ZIG_GLOBAL_CACHE_DIR=\"$tools/zig-cache\"\n\
         exec \"$tools/zig/bin/python\" -m ziglang {action} {arguments}\n"
    )
}

/// Compiler that does not take the target from cargo's builds: Zig has its own names for targets.
fn compiler_script(processor: &str) -> String {
    let call = script("cc", &format!("-target {processor}-linux-musl \"${{arguments[@]}}\""));
    let filter = "#!/bin/bash\narguments=()\nfor argument in \"$@\"; do\n    \
                  case $argument in --target=*) ;; *) arguments+=(\"$argument\") ;; esac\ndone\n";
    call.replacen("#!/bin/bash\n", filter, 1)
}

fn write_script(path: &Path, text: &str) -> Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    // Its time is the compiler's for cargo: a new one would build everything again.
    if std::fs::read_to_string(path).is_ok_and(|present| present == text) {
        return Ok(path.to_path_buf());
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} a program", path.display()))?;
    Ok(path.to_path_buf())
}

/// Returns cargo-cyclonedx, installed at first.
pub(super) fn cyclonedx() -> Result<PathBuf> {
    let program = directory().join("bin/cargo-cyclonedx");
    if !program.exists() {
        println!("installing {CYCLONEDX} below target/tools");
        let mut cargo = Command::new(workspace::cargo());
        run(cargo.args(["install", "--quiet", "--locked", "--root"]).arg(directory()).arg(CYCLONEDX))?;
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_purpose_and_package() {
        let error = run(&mut Command::new("/nowhere/at-all")).expect_err("is missing").to_string();
        assert_eq!(error, "/nowhere/at-all is not installed");
        let mut command = Command::new("rpmbuild");
        command.env("PATH", "/nowhere");
        let error = run(&mut command).expect_err("is not in that PATH").to_string();
        assert_eq!(error, "rpmbuild, which builds .rpm, is not installed: apt-get install rpm");
        let error = run(&mut Command::new("false")).expect_err("fails").to_string();
        assert!(error.contains("false") && error.contains("ended with"), "{error}");
    }

    #[test]
    fn the_compiler_drops_targets_that_zig_does_not_know() {
        let text = compiler_script("aarch64").replace("exec \"$tools/zig/bin/python\"", "echo");
        let mut bash = Command::new("bash");
        bash.args(["-c", &text, "/x/cc-aarch64", "-O2", "--target=aarch64-unknown-linux-musl", "a b.c"]);
        let output = workspace::output_of(&mut bash).expect("bash runs");
        assert_eq!(output, "-m ziglang cc -target aarch64-linux-musl -O2 a b.c\n");
    }
}
