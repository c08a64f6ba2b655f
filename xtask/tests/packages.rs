//! Packages of this build's own program, as `cargo xtask dist` makes them of static ones: linted, installed in a fresh
//! Debian, used, upgraded, downgraded, removed and purged.
//!
//! Static builds and other systems take too long for each run: the release workflow has them.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "needs root: makes a Debian and installs packages in it"]
fn packages_are_installed_used_upgraded_and_removed() {
    let xtask = Path::new(env!("CARGO_BIN_EXE_xtask"));
    let program = xtask.with_file_name("linerate");
    assert!(program.exists(), "{} is missing: cargo build --workspace", program.display());
    let directory = std::env::temp_dir().join(format!("linerate-packages-{}", std::process::id()));
    let output = Command::new(xtask)
        .args(["dist", "--check", "--program"])
        .arg(&program)
        .arg("--out")
        .arg(directory.join("packages"))
        .output()
        .expect("starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let failure = || format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}", failure());
    assert!(text.contains("debian: passed") && text.contains(", 0 failed"), "{}", failure());
    fs::remove_dir_all(&directory).expect("there");
}
