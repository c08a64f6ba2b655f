//! Clippy really refuses what the pure ring bans.
//!
//! A list of bans is worth what fires: a path with a typing error bans nothing. So a small crate that does each
//! forbidden thing once is checked with the clippy.toml of a pure crate. Needs clippy: `rustup component add clippy`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A line of code for each ban that it must raise.
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

/// Writes a crate with one function per forbidden line, guarded by `guard`, and returns what clippy says about it.
fn clippy_says(name: &str, guard: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/wire/clippy.toml");
    let functions: Vec<String> = FORBIDDEN
        .iter()
        .enumerate()
        .map(|(index, (_, line))| {
            format!("{guard}\n#[allow(unreachable_code, dead_code)]\nfn f{index}() {{ {line} }}\n")
        })
        .collect();
    fs::create_dir_all(folder.join("src")).expect("the target folder is writable");
    fs::copy(list, folder.join("clippy.toml")).expect("the pure crates have a clippy.toml");
    fs::write(folder.join("src/lib.rs"), functions.concat()).expect("the target folder is writable");
    let manifest = format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n");
    fs::write(folder.join("Cargo.toml"), manifest).expect("the target folder is writable");
    let output = Command::new(env!("CARGO"))
        .args(["clippy", "--quiet", "--offline", "--all-targets", "--message-format", "short"])
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env_remove("RUSTFLAGS")
        .current_dir(&folder)
        .output()
        .expect("cargo starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "cargo clippy failed (rustup component add clippy?): {text}");
    text
}

fn assert_every_ban_fires(said: &str) {
    for (ban, line) in FORBIDDEN {
        assert!(said.contains(&format!("`{ban}`")), "clippy lets `{line}` pass; it said:\n{said}");
    }
    assert!(!said.contains("does not refer to"), "the list bans something that does not exist:\n{said}");
}

#[test]
fn clippy_refuses_every_ban_in_shipped_code() {
    assert_every_ban_fires(&clippy_says("bans-in-code", ""));
}

#[test]
fn clippy_refuses_every_ban_in_tests() {
    assert_every_ban_fires(&clippy_says("bans-in-tests", "#[cfg(test)]"));
}
