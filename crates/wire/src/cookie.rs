//! The cookie: what ties the connections of one test together, and how one linerate knows another.

use core::fmt::{self, Write as _};
use core::hash::{Hash, Hasher};

/// Bytes of a cookie on the wire: 36 characters and a NUL (iperf3 `COOKIE_SIZE`).
pub const LENGTH: usize = 37;

/// The characters of a cookie (iperf3 `make_cookie`): each random byte picks one of 32.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What a linerate's cookie begins with; the version letter follows.
const LINERATE: &[u8; 8] = b"linerate";

/// The first bytes on the control connection and on every TCP stream.
///
/// Any 37 bytes are a cookie: nothing obliges a client to keep to the alphabet or to end with a NUL. Printed, what is
/// not a printable ASCII character is escaped, and the closing NUL is left out.
#[derive(Clone, Copy)]
pub struct Cookie([u8; LENGTH]);

/// Which extension a linerate's cookie announces: a letter from `a` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtensionVersion(char);

impl ExtensionVersion {
    /// The version that this crate speaks.
    pub const CURRENT: Self = Self('a');

    /// Its letter.
    #[must_use]
    pub const fn letter(self) -> char {
        self.0
    }
}

impl Cookie {
    /// The cookie that a peer has sent.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; LENGTH]) -> Self {
        Self(bytes)
    }

    /// A cookie as iperf3 makes it, from 36 random bytes.
    #[must_use]
    pub fn random(entropy: [u8; LENGTH - 1]) -> Self {
        let mut bytes = [0; LENGTH];
        for (character, random) in bytes.iter_mut().zip(entropy) {
            *character = ALPHABET[usize::from(random % 32)];
        }
        Self(bytes)
    }

    /// A cookie by which another linerate knows this one: a legal cookie to any iperf3. 27 of the 36 random bytes
    /// are used (135 bits).
    #[must_use]
    pub fn linerate(entropy: [u8; LENGTH - 1]) -> Self {
        let mut cookie = Self::random(entropy);
        cookie.0[..LINERATE.len()].copy_from_slice(LINERATE);
        cookie.0[LINERATE.len()] = b'a';
        cookie
    }

    /// The bytes on the wire.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }

    /// The extension that the client speaks; `None` when it is not a linerate.
    #[must_use]
    pub fn extension_version(&self) -> Option<ExtensionVersion> {
        let letter = *self.0.strip_prefix(LINERATE)?.first()?;
        letter.is_ascii_lowercase().then_some(ExtensionVersion(char::from(letter)))
    }
}

impl PartialEq for Cookie {
    /// Looks at every byte, so that the time taken says nothing about where two cookies differ.
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

impl Eq for Cookie {}

impl Hash for Cookie {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.hash(hasher);
    }
}

impl fmt::Display for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.strip_suffix(&[0]).unwrap_or(&self.0);
        shown.escape_ascii().try_for_each(|byte| f.write_char(char::from(byte)))
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cookie({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entropy() -> [u8; 36] {
        core::array::from_fn(|index| u8::try_from(index * 7).expect("small"))
    }

    #[test]
    fn a_random_cookie_keeps_to_the_alphabet_and_ends_with_nul() {
        let cookie = Cookie::random(entropy());
        assert_eq!(cookie.to_string(), "ahov4dkry7gnu3cjqx6fmt2bipw5elszahov");
        assert_eq!(cookie.as_bytes()[36], 0);
        assert_eq!(cookie.extension_version(), None);
    }

    #[test]
    fn a_linerate_is_known_by_its_cookie() {
        let cookie = Cookie::linerate(entropy());
        assert_eq!(cookie.to_string(), "lineratea7gnu3cjqx6fmt2bipw5elszahov");
        assert_eq!(cookie.extension_version(), Some(ExtensionVersion::CURRENT));
        assert!(cookie.as_bytes()[..36].iter().all(|byte| ALPHABET.contains(byte)));
        let mut later = *cookie.as_bytes();
        later[8] = b'c';
        assert_eq!(Cookie::from_bytes(later).extension_version().map(ExtensionVersion::letter), Some('c'));
        later[8] = b'2';
        assert_eq!(Cookie::from_bytes(later).extension_version(), None);
    }

    #[test]
    fn any_bytes_are_a_cookie_and_print_safely() {
        let mut bytes = [b'x'; 37];
        bytes[0] = 0x1b;
        bytes[1] = 0xff;
        bytes[36] = b'!';
        let shown = Cookie::from_bytes(bytes).to_string();
        assert!(shown.starts_with(r"\x1b\xff"), "{shown}");
        assert!(shown.ends_with("x!"), "a missing NUL hides nothing: {shown}");
    }

    #[test]
    fn one_bit_makes_another_cookie() {
        let cookie = Cookie::random(entropy());
        assert_eq!(cookie, Cookie::from_bytes(*cookie.as_bytes()));
        for index in 0..37 {
            let mut other = *cookie.as_bytes();
            other[index] ^= 1;
            assert_ne!(cookie, Cookie::from_bytes(other), "byte {index}");
        }
    }
}
