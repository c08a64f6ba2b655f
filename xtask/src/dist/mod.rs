//! `cargo xtask dist`: packages of linerate.
//!
//! ```text
//!   build (static, per platform) ──► stage (tree per prefix) ──► tarball, .deb, .rpm, image ──► formula, bill, digests
//! ```
//!
//! Version and date come from the manifest and the last commit ([`release`]). packaging/README.md has the packages and
//! their checks; the texts of packages are in packaging/.

mod archive;
mod build;
mod check;
mod debian;
mod image;
mod options;
mod platform;
mod pscheduler;
mod release;
mod rpm;
mod sbom;
mod stage;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use self::debian::BinaryPackage;
use self::options::DistOptions;
use self::platform::Platform;
use self::release::Release;
use self::stage::GeneratedTexts;
use crate::workspace;

/// Maintainer of the packages.
const MAINTAINER: &str = "The linerate authors <maintainers@linerate.invalid>";

/// Directories of one build, so that a second one shares nothing with it.
struct BuildDirectories {
    /// Cargo's output.
    target: PathBuf,
    /// Files in the making.
    work: PathBuf,
    /// Packages.
    out: PathBuf,
}

/// Makes the packages that the options select.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let options = options::parse(arguments)?;
    let release = Release::of(&workspace::root(), &options)?;
    if let Some(tag) = &options.tag {
        ensure!(*tag == format!("v{}", release.version), "the tag {tag} is not that of version {}", release.version);
    }
    let target = workspace::root().join("target");
    let out = std::path::absolute(&options.out).context("cannot resolve the directory of the packages")?;
    let first = BuildDirectories { target: target.join("dist-build"), work: out.with_extension("work"), out };
    if !options.check_only {
        make(&options, &release, &first)?;
    }
    if options.twice {
        let place = target.join("dist-second");
        let second = BuildDirectories { target: place.join("build"), work: place.join("work"), out: place.join("out") };
        make(&options, &release, &second)?;
        let is_equal = compare(&first.out, &second.out)?;
        fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
        if !is_equal {
            return Ok(false);
        }
    }
    Ok(!(options.check || options.check_only) || check::run(&first, &options))
}

/// Builds the static program that this machine's packages contain; returns it.
pub(crate) fn build_program() -> Result<PathBuf> {
    let root = workspace::root();
    let release = Release::of(&root, &options::parse(&[])?)?;
    build::build(Platform::of_this_machine()?, &release, &root.join("target/dist-build"))
}

fn make(options: &DistOptions, release: &Release, directories: &BuildDirectories) -> Result<()> {
    let BuildDirectories { work, out, .. } = directories;
    archive::clear(out)?;
    archive::clear(work)?;
    if options.lab_kernel {
        make_lab_kernel(release, directories)?;
        return write_digests(out);
    }
    let programs = programs(options, release, &directories.target)?;
    let texts = GeneratedTexts::write(programs.iter().map(|(_, program)| program), &work.join("texts"))?;
    let homepage = options.repository.as_deref().unwrap_or("https://linerate.invalid");
    let mut trees = Vec::new();
    for (platform, program) in &programs {
        let tree = tree(work, *platform);
        stage::write(program, &texts, "/usr", &tree)?;
        make_tarball((*platform, program), &texts, release, directories)?;
        debian::package(BinaryPackage::Linerate, (*platform, &tree), release, &work.join("deb"), out)?;
        rpm::package((*platform, &tree), release, homepage, &work.join("rpm"), out)?;
        trees.push((*platform, tree));
    }
    let image = out.join(format!("linerate-{}-oci.tar", release.version));
    image::write(&trees, release, &work.join("image"), &image)?;
    if options.program.is_none() {
        sbom::write(release, &work.join("bill"), &out.join(format!("linerate-{}.cdx.json", release.version)))?;
    }
    write_formula(options, release, out)?;
    write_digests(out)
}

/// Programs to package, each with its platform.
fn programs(options: &DistOptions, release: &Release, target: &Path) -> Result<Vec<(Platform, PathBuf)>> {
    let program = |platform: &Platform| match &options.program {
        Some(program) => Ok((*platform, program.clone())),
        None => Ok((*platform, build::build(*platform, release, target)?)),
    };
    options.platforms.iter().map(program).collect()
}

/// Files of a platform that are installed at `/usr`.
fn tree(work: &Path, platform: Platform) -> PathBuf {
    work.join(format!("usr-{}", platform.processor()))
}

fn tarball_name(release: &Release, platform: Platform) -> String {
    format!("linerate-{}-{}-linux-musl", release.version, platform.processor())
}

/// Makes the archive that is unpacked at `/usr/local`.
fn make_tarball(
    (platform, program): (Platform, &Path),
    texts: &GeneratedTexts,
    release: &Release,
    directories: &BuildDirectories,
) -> Result<()> {
    let (name, work) = (tarball_name(release, platform), directories.work.join("tarball"));
    stage::write(program, texts, "/usr/local", &work.join(&name))?;
    let file = directories.out.join(format!("{name}.tar"));
    archive::tar(&work, &[&name], release.epoch, &file)?;
    archive::gzip(&file, release.compression.gzip).map(drop)
}

/// Packages the kernel of the lab that this version of linerate uses.
fn make_lab_kernel(release: &Release, directories: &BuildDirectories) -> Result<()> {
    let kernel = linerate_lab::kernel::find().context("cannot look for the lab's kernel")?;
    let kernel = kernel.context("no kernel is built: run `linerate lab kernel build` first")?;
    let tree = directories.work.join("lab-kernel");
    let place = kernel.path.parent().context("the kernel has no directory")?;
    let name = place.file_name().context("the kernel's directory has no name")?;
    let to = tree.join("lib/linerate/kernels").join(name);
    fs::create_dir_all(&to).with_context(|| format!("cannot create {}", to.display()))?;
    for file in archive::file_names(place)? {
        fs::copy(place.join(&file), to.join(&file)).with_context(|| format!("cannot copy {file}"))?;
    }
    let work = directories.work.join("deb");
    let file = debian::package(BinaryPackage::LabKernel, (Platform::X86_64, &tree), release, &work, &directories.out)?;
    println!("{file}: Linux {} from {}", kernel.metadata.version, kernel.metadata.source);
    Ok(())
}

/// Writes the Homebrew formula, which downloads the tarballs of both platforms.
fn write_formula(options: &DistOptions, release: &Release, out: &Path) -> Result<()> {
    let (Some(repository), true) = (&options.repository, options.platforms == Platform::ALL) else {
        println!("no Homebrew formula: it needs --repository and the tarballs of both platforms");
        return Ok(());
    };
    let formula = out.join("linerate.rb");
    let template = workspace::root().join("packaging/homebrew/linerate.rb.in");
    fs::copy(&template, &formula).with_context(|| format!("cannot copy {}", template.display()))?;
    let digest = |platform: Platform| archive::sha256(&out.join(format!("{}.tar.gz", tarball_name(release, platform))));
    fill_in(
        &formula,
        &[
            ("REPOSITORY", repository),
            ("VERSION", &release.version),
            ("SHA256_X86_64", &digest(Platform::X86_64)?),
            ("SHA256_AARCH64", &digest(Platform::Aarch64)?),
        ],
    )
}

fn write_digests(out: &Path) -> Result<()> {
    let names = archive::file_names(out)?;
    let text = archive::digests(out, &names)?;
    fs::write(out.join("SHA256SUMS"), &text).context("cannot write SHA256SUMS")?;
    for name in names {
        let size = fs::metadata(out.join(&name)).with_context(|| format!("cannot read {name}"))?.len();
        println!("{size:>10}  {name}");
    }
    println!("            in {}", out.display());
    Ok(())
}

/// Compares two sets of packages by name and digest; prints the files that differ.
fn compare(first: &Path, second: &Path) -> Result<bool> {
    let read = |directory: &Path| fs::read_to_string(directory.join("SHA256SUMS")).context("cannot read SHA256SUMS");
    let (first, second) = (read(first)?, read(second)?);
    let differing: Vec<&str> = first.lines().filter(|line| !second.lines().any(|other| other == *line)).collect();
    if differing.is_empty() && first.lines().count() == second.lines().count() {
        println!("reproducible: {} files are equal in a second build", first.lines().count());
        return Ok(true);
    }
    for line in differing {
        println!("differs in a second build: {}", line.split_whitespace().last().unwrap_or(line));
    }
    Ok(false)
}

/// Replaces each `@NAME@` in the file by its value.
fn fill_in(file: &Path, values: &[(&str, &str)]) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let replaced = |text: String, (name, value): &(&str, &str)| text.replace(&format!("@{name}@"), value);
    let text = values.iter().fold(text, replaced);
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Shell commands that name the changes in effect when linerate is removed.
fn remove_notice() -> Result<String> {
    let file = workspace::root().join("packaging/remove-notice.sh");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    // What comes before the first empty line is about the file itself.
    Ok(text.split_once("\n\n").map_or(text.as_str(), |(_, commands)| commands).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_and_different_packages_are_told_apart() {
        let top = std::env::temp_dir().join(format!("linerate-dist-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            fs::create_dir_all(top.join(name)).expect("writable");
            fs::write(top.join(name).join("SHA256SUMS"), text).expect("writable");
            top.join(name)
        };
        let first = write("first", "1  a\n2  b\n");
        assert!(compare(&first, &write("same", "1  a\n2  b\n")).expect("readable"));
        assert!(!compare(&first, &write("other", "1  a\n3  b\n")).expect("readable"));
        assert!(!compare(&first, &write("more", "1  a\n2  b\n3  c\n")).expect("readable"));
        fs::remove_dir_all(&top).expect("there");
    }

    #[test]
    fn values_replace_their_names_only() {
        let file = std::env::temp_dir().join(format!("linerate-fill-in-{}", std::process::id()));
        fs::write(&file, "v@VERSION@ @VERSION@ a@b.example @OTHER@\n").expect("writable");
        fill_in(&file, &[("VERSION", "1.2.3")]).expect("writable");
        assert_eq!(fs::read_to_string(&file).expect("readable"), "v1.2.3 1.2.3 a@b.example @OTHER@\n");
        fs::remove_file(&file).expect("there");
    }

    #[test]
    fn the_notice_is_a_command_without_the_comment_about_its_file() {
        let notice = remove_notice().expect("readable");
        assert!(notice.contains("linerate rollback --list") && !notice.contains("#!"), "{notice}");
    }
}
