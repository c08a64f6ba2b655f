//! Tree of files that every package of a platform has, below one prefix.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{archive, pscheduler, tools};
use crate::workspace::{self, output_of};

/// Documents of the repository that packages have.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Examples that packages have: what monitoring systems read.
const EXAMPLES: [&str; 2] = ["packaging/prometheus/linerate.rules.yml", "packaging/grafana/linerate-fleet.json"];

/// Completions: shell, file below `share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/linerate"),
    ("zsh", "zsh/site-functions/_linerate"),
    ("fish", "fish/vendor_completions.d/linerate.fish"),
];

/// Texts that linerate writes itself: its manual pages and completions, equal on each platform.
pub(super) struct GeneratedTexts {
    directory: PathBuf,
}

impl GeneratedTexts {
    /// Lets the first of `programs` that runs on this machine write them below `directory`.
    pub(super) fn write<'a>(programs: impl IntoIterator<Item = &'a PathBuf>, directory: &Path) -> Result<Self> {
        let runs = |program: &&PathBuf| Command::new(program).arg("--version").output().is_ok();
        let program = programs.into_iter().find(runs).context(
            "none of the programs runs on this machine, so that none writes the manual pages: add --target for it",
        )?;
        archive::clear(directory)?;
        output_of(Command::new(program).args(["man", "--dir"]).arg(directory.join("man1")))?;
        for (shell, _) in COMPLETIONS {
            let text = output_of(Command::new(program).args(["completions", shell]))?;
            fs::write(directory.join(shell), text).context("cannot write completions")?;
        }
        Ok(Self { directory: directory.to_path_buf() })
    }
}

/// Writes the tree of one program below `to`, to be installed at `prefix`, such as `/usr`.
pub(super) fn write(program: &Path, texts: &GeneratedTexts, prefix: &str, to: &Path) -> Result<()> {
    archive::clear(to)?;
    install(program, &to.join("bin/linerate"), 0o755)?;
    strip(&to.join("bin/linerate"))?;
    let pages = to.join("share/man/man1");
    for name in archive::file_names(&texts.directory.join("man1"))? {
        install(&texts.directory.join("man1").join(&name), &pages.join(&name), 0o644)?;
    }
    tools::run(Command::new("gzip").args(["--best", "--no-name", "--recursive"]).arg(&pages))?;
    for (shell, file) in COMPLETIONS {
        install(&texts.directory.join(shell), &to.join("share").join(file), 0o644)?;
    }
    let root = workspace::root();
    for name in DOCUMENTS {
        install(&root.join(name), &to.join("share/doc/linerate").join(name), 0o644)?;
    }
    for path in EXAMPLES {
        let name = Path::new(path).file_name().context("an example without a name")?;
        install(&root.join(path), &to.join("share/doc/linerate/examples").join(name), 0o644)?;
    }
    pscheduler::write(prefix, to)?;
    for name in UNITS {
        let unit = fs::read_to_string(root.join("packaging").join(name)).context("cannot read the unit")?;
        write_text(&to.join("lib/systemd/system").join(name), &unit_at(name, &unit, prefix)?)?;
    }
    Ok(())
}

/// Units of systemd: the server, the monitor of a host, and its tests by a timer.
pub(super) const UNITS: [&str; 4] =
    ["linerate.service", "linerate-monitor@.service", "linerate-monitor-once@.service", "linerate-monitor-once@.timer"];

/// Unit with the program below `prefix`.
fn unit_at(name: &str, unit: &str, prefix: &str) -> Result<String> {
    let is_timer = Path::new(name).extension().is_some_and(|extension| extension == "timer");
    ensure!(is_timer || unit.contains("=/usr/bin/linerate "), "packaging/{name} does not start /usr/bin/linerate");
    Ok(unit.replace("=/usr/bin/linerate ", &format!("={prefix}/bin/linerate ")))
}

/// Removes the symbols of a program of this machine; static builds have none.
fn strip(program: &Path) -> Result<()> {
    let sections = output_of(Command::new("readelf").args(["--wide", "--section-headers"]).arg(program))?;
    if sections.contains(" .symtab ") { tools::run(Command::new("strip").arg(program)) } else { Ok(()) }
}

fn install(from: &Path, to: &Path, mode: u32) -> Result<()> {
    create_parent(to)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the mode of {}", to.display()))
}

/// Writes a text with its directory.
pub(super) fn write_text(to: &Path, text: &str) -> Result<()> {
    write_file(to, text, 0o644)
}

/// Writes a text of this mode with its directory.
pub(super) fn write_file(to: &Path, text: &str, mode: u32) -> Result<()> {
    create_parent(to)?;
    fs::write(to, text).with_context(|| format!("cannot write {}", to.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the mode of {}", to.display()))
}

fn create_parent(file: &Path) -> Result<()> {
    let parent = file.parent().unwrap_or(file);
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_starts_the_program_of_its_prefix() {
        let unit = fs::read_to_string(workspace::root().join("packaging/linerate.service")).expect("the unit");
        let local = unit_at("linerate.service", &unit, "/usr/local").expect("starts it");
        assert!(local.contains("\nExecStart=/usr/local/bin/linerate serve\n"), "{local}");
        assert_eq!(unit_at("linerate.service", &unit, "/usr").expect("starts it"), unit);
        assert!(unit_at("linerate.service", "[Service]\nExecStart=/bin/true\n", "/usr").is_err());
    }
}
