//! Escaping of names and commands in units (systemd.unit(5), systemd.service(5), systemd-escape(1)).

use std::fmt::Write as _;

/// Escapes a name as part of a unit name: bytes other than letters, digits, `_`, `.` and `:` become `\x` and two
/// hexadecimal digits. (A leading dot of a whole name is escaped, too; these parts are never leading.)
pub(super) fn escaped(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"_.:".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, r"\x{byte:02x}");
        }
    }
    text
}

/// Command line for `ExecStart=`: variables are expanded in the arguments, not in the program.
pub(super) fn command(program: &str, arguments: &[&str]) -> String {
    let mut line = quoted(program);
    for argument in arguments {
        line.push(' ');
        line.push_str(&quoted(&argument.replace('$', "$$")));
    }
    line
}

/// Quotes one argument. `%` begins a specifier everywhere; quotes and backslashes are as in C. A quoted `;` is literal.
fn quoted(word: &str) -> String {
    let text = word.replace('%', "%%");
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=+/.,:%$@".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text;
    }
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use linerate_sys::command::run;

    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("eth0.10"), "eth0.10");
        assert_eq!(escaped("br-lan@1"), r"br\x2dlan\x401");
        assert_eq!(escaped("\u{e9}%\\"), r"\xc3\xa9\x25\x5c");
    }

    #[test]
    fn names_are_escaped_as_systemd_does() {
        for name in
            ["eth0", "br-lan", "eth0.10", "wlp3s0@x", "a\\b", "\u{e9}t\u{e9}", "a%b$c", "_a:b", "--", "a'b\"c", "~+="]
        {
            let path = format!("/sys/subsystem/net/devices/{name}");
            let output = run("systemd-escape", &["--path", "--suffix=device", &path], None, Duration::from_secs(20))
                .expect("not run: systemd-escape of the package systemd is needed");
            let expected = format!("sys-subsystem-net-devices-{}.device", escaped(name));
            assert_eq!(output.stdout_text().trim_end(), expected, "{name}: {}", output.stderr_text());
        }
    }

    #[test]
    fn commands_stay_words() {
        let line = command("/opt/my tools/100%/line$rate", &["shape", "a$b", "--up", "20", "x y", "\"\\", ";", ""]);
        let expected = r#""/opt/my tools/100%%/line$rate" shape a$$b --up 20 "x y" "\"\\" ";" """#;
        assert_eq!(line, expected);
    }
}
