//! Options of `cargo xtask dist`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::platform::Platform;

/// Options of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DistOptions {
    /// Directory of the packages.
    pub(super) out: PathBuf,
    /// Platforms to package, in the order of [`Platform::ALL`].
    pub(super) platforms: Vec<Platform>,
    /// Program to package instead of a static build, of this machine's platform.
    pub(super) program: Option<PathBuf>,
    /// Revision of the packages of one version.
    pub(super) revision: u32,
    /// Address of the repository, which the formula downloads from.
    pub(super) repository: Option<String>,
    /// Tag of the release, which must be that of the version.
    pub(super) tag: Option<String>,
    /// True to build a second time in other directories, and compare the digests.
    pub(super) twice: bool,
    /// True to check the packages: linters, installation, other systems.
    pub(super) check: bool,
    /// True to check the packages of an earlier run with the same options, and make none.
    pub(super) check_only: bool,
    /// True to package the newest kernel of the lab only.
    pub(super) lab_kernel: bool,
}

pub(super) fn parse(arguments: &[String]) -> Result<DistOptions> {
    let mut options = DistOptions {
        out: PathBuf::from("target/packages"),
        platforms: Vec::new(),
        program: None,
        revision: 1,
        repository: None,
        tag: None,
        twice: false,
        check: false,
        check_only: false,
        lab_kernel: false,
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--out" => options.out = PathBuf::from(value()?),
            "--target" => options.platforms.push(Platform::parse(value()?)?),
            "--program" => options.program = Some(PathBuf::from(value()?)),
            "--revision" => options.revision = value()?.parse().context("--revision needs a whole number")?,
            "--repository" => options.repository = Some(value()?.trim_end_matches('/').to_owned()),
            "--tag" => options.tag = Some(value()?.clone()),
            "--twice" => options.twice = true,
            "--check" => options.check = true,
            "--check-only" => options.check_only = true,
            "--lab-kernel" => options.lab_kernel = true,
            _ => bail!("unknown argument '{argument}'"),
        }
    }
    ensure!(
        options.program.is_none() || options.platforms.is_empty(),
        "--program is of this machine's platform: leave out --target"
    );
    ensure!(
        !options.lab_kernel || !(options.check || options.check_only),
        "--lab-kernel makes one package, which has no checks: leave out --check"
    );
    ensure!(!options.check_only || !options.twice, "--check-only makes no packages: leave out --twice");
    ensure!(options.program.is_none() || !options.twice, "--twice needs two builds: leave out --program");
    if options.program.is_some() {
        options.platforms = vec![Platform::of_this_machine()?];
    } else if options.platforms.is_empty() {
        options.platforms = Platform::ALL.to_vec();
    }
    options.platforms.sort_unstable();
    options.platforms.dedup();
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<DistOptions> {
        parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn both_platforms_are_the_default_and_named_ones_are_sorted() {
        let options = parsed("").expect("nothing is needed");
        assert_eq!((options.platforms, options.revision), (Platform::ALL.to_vec(), 1));
        let options = parsed("--target aarch64 --target x86_64-unknown-linux-musl --target aarch64").expect("known");
        assert_eq!(options.platforms, Platform::ALL);
    }

    #[test]
    fn a_repository_has_no_slash_at_its_end() {
        let options = parsed("--repository https://forge.example/a/linerate/").expect("an address");
        assert_eq!(options.repository.as_deref(), Some("https://forge.example/a/linerate"));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (text, part) in [
            ("--target riscv64", "riscv64"),
            ("--program x --twice", "--twice"),
            ("--check-only --twice", "--twice"),
            ("--program x --target aarch64", "--target"),
            ("--lab-kernel --check", "--lab-kernel"),
            ("--revision one", "--revision"),
            ("--out", "--out needs a value"),
            ("--fast", "--fast"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }
}
