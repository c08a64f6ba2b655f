//! Tests that clippy refuses the bans of the pure ring, and what the workspace's lints forbid.
//!
//! A path with a typing error bans nothing. Therefore small crates that do each forbidden thing once are checked, with the
//! clippy.toml of a pure crate and with the lints of the workspace. Needs clippy: `rustup component add clippy`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Code that must raise each ban.
const FORBIDDEN: &[(&str, &str)] = &[
    ("std::time::Instant::now", "let _ = std::time::Instant::now();"),
    ("std::time::SystemTime::now", "let _ = std::time::SystemTime::now();"),
    ("std::thread::sleep", "std::thread::sleep(std::time::Duration::ZERO);"),
    ("std::thread::spawn", "let _ = std::thread::spawn(|| ());"),
    ("std::thread::scope", "std::thread::scope(|_| ());"),
    ("std::thread::Builder", "let _ = std::thread::Builder::new();"),
    ("std::net::TcpListener", "let _ = std::net::TcpListener::bind(\"[::1]:0\");"),
    ("std::net::TcpStream", "let _ = std::net::TcpStream::connect(\"[::1]:0\");"),
    ("std::net::UdpSocket", "let _ = std::net::UdpSocket::bind(\"[::1]:0\");"),
    ("std::os::unix::net::UnixStream", "let _ = std::os::unix::net::UnixStream::pair();"),
    ("std::net::ToSocketAddrs::to_socket_addrs", "let _ = std::net::ToSocketAddrs::to_socket_addrs(\"[::1]:0\");"),
    ("std::fs::File", "let _ = std::fs::File::open(\"x\");"),
    ("std::fs::read", "let _ = std::fs::read(\"x\");"),
    ("std::fs::read_to_string", "let _ = std::fs::read_to_string(\"x\");"),
    ("std::fs::write", "let _ = std::fs::write(\"x\", \"\");"),
    ("std::path::Path::exists", "let _ = std::path::Path::new(\"x\").exists();"),
    ("std::process::Command", "let _ = std::process::Command::new(\"x\");"),
    ("std::process::exit", "std::process::exit(0);"),
    ("std::env::var", "let _ = std::env::var(\"x\");"),
    ("std::io::stdin", "let _ = std::io::stdin();"),
    ("std::io::stdout", "let _ = std::io::stdout();"),
    ("std::io::stderr", "let _ = std::io::stderr();"),
    ("std::println", "println!();"),
];

/// Lints of the workspace that hold invariants, each with code that must raise it.
const LINTED: &[(&str, &str)] = &[
    ("unsafe_code", "pub fn f0() { unsafe { std::hint::unreachable_unchecked() } }"),
    ("clippy::undocumented_unsafe_blocks", "pub fn f1() { unsafe { std::hint::unreachable_unchecked() } }"),
    ("clippy::undocumented_unsafe_blocks", "pub struct S(*const u8); unsafe impl Send for S {}"),
    ("clippy::print_stdout", "pub fn f2() { println!(); }"),
    ("clippy::print_stderr", "pub fn f3() { eprintln!(); }"),
    ("clippy::dbg_macro", "pub fn f4() { dbg!(1); }"),
    ("clippy::exit", "pub fn f5() { std::process::exit(1); }"),
    ("clippy::todo", "pub fn f6() { todo!() }"),
    ("clippy::unimplemented", "pub fn f7() { unimplemented!() }"),
    ("clippy::unwrap_used", "pub fn f8() { None::<u8>.unwrap(); }"),
    ("clippy::self_named_module_files", "mod outer;"),
    ("missing_docs", "pub fn f9() {}"),
    ("unreachable_pub", "mod private { pub fn f10() {} }"),
];

/// Writes a crate of these files (path and text) and returns clippy's messages in `format`.
fn clippy_output(name: &str, files: &[(&str, &str)], format: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a path below the folder")).expect("the target folder is writable");
        fs::write(path, text).expect("the target folder is writable");
    }
    let output = Command::new(env!("CARGO"))
        .args(["clippy", "--quiet", "--offline", "--all-targets", "--message-format", format])
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("RUSTFLAGS", "--cap-lints=warn")
        .current_dir(&folder)
        .output()
        .expect("cargo starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "cargo clippy failed (rustup component add clippy?): {text}");
    text
}

/// Returns the manifest of a crate with these lints.
fn manifest(name: &str, lints: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n{lints}")
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// Returns clippy's output for one function per forbidden line, guarded by `guard`.
fn output_for_bans(name: &str, guard: &str) -> String {
    let function = |(index, (_, line)): (usize, &(&str, &str))| {
        format!("{guard}\n#[allow(unreachable_code, dead_code)]\nfn f{index}() {{ {line} }}\n")
    };
    let functions = FORBIDDEN.iter().enumerate().map(function).collect::<Vec<_>>().concat();
    let files = [
        ("Cargo.toml", manifest(name, "")),
        ("clippy.toml", read("crates/wire/clippy.toml")),
        ("src/lib.rs", functions),
    ];
    clippy_output(name, &files.each_ref().map(|(path, text)| (*path, text.as_str())), "short")
}

fn assert_every_ban_fires(output: &str) {
    for (ban, line) in FORBIDDEN {
        assert!(output.contains(&format!("`{ban}`")), "clippy accepts `{line}`; its output:\n{output}");
    }
    assert!(!output.contains("does not refer to"), "the list bans something that does not exist:\n{output}");
}

#[test]
fn clippy_refuses_every_ban_in_shipped_code() {
    assert_every_ban_fires(&output_for_bans("bans-in-code", ""));
}

#[test]
fn clippy_refuses_every_ban_in_tests() {
    assert_every_ban_fires(&output_for_bans("bans-in-tests", "#[cfg(test)]"));
}

#[test]
fn the_lints_of_the_workspace_fire() {
    let root = read("Cargo.toml");
    let lints = root.split_once("[workspace.lints.rust]").expect("the workspace has lints").1;
    let lints = lints.split("[profile").next().unwrap_or_default().replace("[workspace.lints", "[lints");
    let code: Vec<String> = LINTED.iter().map(|(_, code)| format!("{code}\n")).collect();
    let files = [
        ("Cargo.toml", manifest("lints", &format!("[lints.rust]{lints}"))),
        ("src/lib.rs", code.concat()),
        ("src/outer.rs", "mod inner;\n".to_owned()),
        ("src/outer/inner.rs", "//! Nothing.\n".to_owned()),
    ];
    let output = clippy_output("lints", &files.each_ref().map(|(path, text)| (*path, text.as_str())), "json");
    let messages = output.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let fired: BTreeSet<(String, u64)> = messages
        .filter_map(|message| {
            let line = message["message"]["spans"][0]["line_start"].as_u64()?;
            Some((message["message"]["code"]["code"].as_str()?.to_owned(), line))
        })
        .collect();
    for (line, (lint, code)) in (1..).zip(LINTED) {
        let is_in_line = *lint == "clippy::self_named_module_files" || fired.contains(&((*lint).to_owned(), line));
        assert!(is_in_line && fired.iter().any(|(found, _)| found == lint), "clippy accepts `{code}`: {fired:?}");
    }
}
