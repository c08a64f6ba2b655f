//! The authorized users file: lines of `NAME,HASH`, and comments after `#`.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

use super::SetupError;

type PasswordHash = [u8; SHA256_OUTPUT_LEN];

/// Names and password hashes.
#[derive(Debug)]
pub(super) struct AuthorizedUsers(Vec<(String, PasswordHash)>);

impl AuthorizedUsers {
    pub(super) fn parse(text: &str) -> Result<Self, SetupError> {
        let is_entry = |line: &str| !line.is_empty() && !line.starts_with('#');
        text.lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim()))
            .filter(|(_, line)| is_entry(line))
            .map(|(line, text)| parse_user(text).ok_or(SetupError::UsersLine { line }))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns true when the user is known and the password is right. An unknown user takes as long as a wrong
    /// password.
    pub(super) fn verify(&self, user: &str, password: &[u8]) -> bool {
        let presented = digest(&SHA256, &[b"{", user.as_bytes(), b"}", password].concat());
        let known = self.0.iter().find(|(name, _)| name == user);
        let dummy = [0; SHA256_OUTPUT_LEN];
        let hash = known.map_or(&dummy, |(_, hash)| hash);
        verify_slices_are_equal(hash, presented.as_ref()).is_ok() && known.is_some()
    }
}

fn parse_user(line: &str) -> Option<(String, PasswordHash)> {
    let (name, digits) = line.split_once(',')?;
    let (name, digits) = (name.trim(), digits.trim().as_bytes());
    if name.is_empty() || digits.len() != 2 * SHA256_OUTPUT_LEN {
        return None;
    }
    let mut hash = [0; SHA256_OUTPUT_LEN];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some((name.to_owned(), hash))
}

fn digit(character: u8) -> Option<u8> {
    let value = char::from(character).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of iperf3's manual page.
    const MARIO: &str = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b";

    #[test]
    fn the_manual_pages_example() {
        let users = AuthorizedUsers::parse(&format!("# users\n\n  {MARIO}  \n# end")).expect("a users file");
        assert!(users.verify("mario", b"rossi"));
        assert!(!users.verify("mario", b"Rossi"));
        assert!(!users.verify("mario", b""));
        assert!(!users.verify("luigi", b"rossi"));
        assert!(!users.verify("", b""));
    }

    #[test]
    fn bad_lines_are_named() {
        let short = MARIO.trim_end_matches('b');
        let not_hexadecimal = MARIO.replace("bf7a", "bf7g");
        for bad in ["mario", "mario,", ",bf7a", short, not_hexadecimal.as_str()] {
            let text = format!("# one\n{MARIO}\n{bad}\n");
            assert_eq!(AuthorizedUsers::parse(&text).err(), Some(SetupError::UsersLine { line: 3 }), "{bad}");
        }
        assert!(AuthorizedUsers::parse("").is_ok_and(|users| !users.verify("mario", b"rossi")));
    }
}
