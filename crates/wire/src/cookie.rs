//! The cookie: identifies the connections of one test, and a linerate to another.

use core::fmt::{self, Write as _};
use core::hash::{Hash, Hasher};

/// Bytes of a cookie on the wire: 36 characters and a NUL (iperf3 `COOKIE_SIZE`).
pub const LENGTH: usize = 37;

/// Characters of a cookie (iperf3 `make_cookie`): each random byte selects one of 32.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Prefix of a linerate's cookie; the version letter follows.
const LINERATE_PREFIX: &[u8; 8] = b"linerate";

/// First bytes on the control connection and on every TCP stream.
///
/// Any 37 bytes are a cookie: a client need not use the alphabet or end with a NUL. `Display` escapes characters other
/// than printable ASCII, and omits the final NUL.
#[derive(Clone, Copy)]
pub struct Cookie([u8; LENGTH]);

/// Purpose of a connection in a linerate's cookie: the letter after `linerate`.
///
/// Any other letter is of a later version, and is answered as an iperf3 client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtensionVersion {
    /// `a`: a bandwidth test, with the extension of [`crate::extension`].
    Tests,
    /// `b`: the control connection of a probe session ([`crate::probe`]).
    Probes,
    /// `c`: a load connection of the probe session whose token fills the remainder of the cookie.
    Load,
}

impl ExtensionVersion {
    /// All supported purposes.
    pub const ALL: [Self; 3] = [Self::Tests, Self::Probes, Self::Load];

    /// Letter in the cookie.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Tests => 'a',
            Self::Probes => 'b',
            Self::Load => 'c',
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.letter() == char::from(byte))
    }
}

impl Cookie {
    /// Cookie received from a peer.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; LENGTH]) -> Self {
        Self(bytes)
    }

    /// Cookie as iperf3 makes it, from 36 random bytes.
    #[must_use]
    pub fn random(entropy: [u8; LENGTH - 1]) -> Self {
        let mut bytes = [0; LENGTH];
        for (character, random) in bytes.iter_mut().zip(entropy) {
            *character = ALPHABET[usize::from(random % 32)];
        }
        Self(bytes)
    }

    /// Cookie that identifies a linerate, and is valid for any iperf3. 27 of the 36 random bytes are used (135 bits).
    #[must_use]
    pub fn linerate(entropy: [u8; LENGTH - 1]) -> Self {
        Self::announcing(ExtensionVersion::Tests, entropy)
    }

    /// Cookie of a probe session's control connection, with the entropy of [`Cookie::linerate`].
    #[must_use]
    pub fn probes(entropy: [u8; LENGTH - 1]) -> Self {
        Self::announcing(ExtensionVersion::Probes, entropy)
    }

    /// Cookie of a load connection that joins the probe session with this token.
    #[must_use]
    pub fn load(token: SessionToken) -> Self {
        let mut cookie = Self::announcing(ExtensionVersion::Load, [0; LENGTH - 1]);
        cookie.0[LINERATE_PREFIX.len() + 1..LENGTH - 1].copy_from_slice(&token.0);
        cookie
    }

    fn announcing(version: ExtensionVersion, entropy: [u8; LENGTH - 1]) -> Self {
        let mut cookie = Self::random(entropy);
        cookie.0[..LINERATE_PREFIX.len()].copy_from_slice(LINERATE_PREFIX);
        // All letters are ASCII.
        cookie.0[LINERATE_PREFIX.len()] = u8::try_from(version.letter()).unwrap_or(b'a');
        cookie
    }

    /// The same cookie with this key in place of its first random characters; 11 of them (55 bits) are left.
    #[must_use]
    pub fn with_key(mut self, key: &AdmissionKey) -> Self {
        self.0[KEY_START..KEY_START + KEY_LENGTH].copy_from_slice(&key.0);
        self
    }

    /// True when the cookie is a linerate's and has this key.
    #[must_use]
    pub fn has_key(&self, key: &AdmissionKey) -> bool {
        let shown = self.0[KEY_START..KEY_START + KEY_LENGTH].first_chunk();
        self.extension_version().is_some() && shown.is_some_and(|shown| constant_time_eq(shown, &key.0))
    }

    /// The bytes on the wire.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }

    /// Purpose of the connection; `None` when the client is not a linerate, or of a later version.
    #[must_use]
    pub fn extension_version(&self) -> Option<ExtensionVersion> {
        ExtensionVersion::from_byte(*self.0.strip_prefix(LINERATE_PREFIX)?.first()?)
    }
}

/// Position of an [`AdmissionKey`] in a cookie: after the version letter.
const KEY_START: usize = LINERATE_PREFIX.len() + 1;

/// Characters of an [`AdmissionKey`].
pub const KEY_LENGTH: usize = 16;

/// Secret with which the cookies of one client begin: 80 random bits. A server for that client alone refuses all others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AdmissionKey([u8; KEY_LENGTH]);

impl AdmissionKey {
    /// Key from random bytes.
    #[must_use]
    pub fn random(entropy: [u8; KEY_LENGTH]) -> Self {
        Self(entropy.map(|random| ALPHABET[usize::from(random % 32)]))
    }

    /// Key with these characters; `None` for another number of them, or one that is not in the alphabet.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let characters: [u8; KEY_LENGTH] = text.as_bytes().try_into().ok()?;
        characters.iter().all(|character| ALPHABET.contains(character)).then_some(Self(characters))
    }
}

impl fmt::Display for AdmissionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| f.write_char(char::from(*byte)))
    }
}

impl fmt::Debug for AdmissionKey {
    /// Hides the key from logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Characters of a [`SessionToken`].
pub const TOKEN_LENGTH: usize = LENGTH - 1 - LINERATE_PREFIX.len() - 1;

/// Token that identifies a probe session's datagrams and load connections: 27 characters of a cookie's alphabet, 135
/// random bits.
#[derive(Clone, Copy)]
pub struct SessionToken([u8; TOKEN_LENGTH]);

impl SessionToken {
    /// Token from random bytes.
    #[must_use]
    pub fn random(entropy: [u8; TOKEN_LENGTH]) -> Self {
        Self(entropy.map(|random| ALPHABET[usize::from(random % 32)]))
    }

    /// Token with these characters; `None` when one of them is not in the alphabet.
    #[must_use]
    pub fn from_characters(characters: [u8; TOKEN_LENGTH]) -> Option<Self> {
        characters.iter().all(|character| ALPHABET.contains(character)).then_some(Self(characters))
    }

    /// Characters of the token.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; TOKEN_LENGTH] {
        &self.0
    }
}

impl PartialEq for SessionToken {
    fn eq(&self, other: &Self) -> bool {
        constant_time_eq(&self.0, &other.0)
    }
}

impl Eq for SessionToken {}

impl Hash for SessionToken {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.hash(hasher);
    }
}

impl fmt::Display for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| f.write_char(char::from(*byte)))
    }
}

impl fmt::Debug for SessionToken {
    /// Hides the token, which grants access like a password, from logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Compares in constant time, which does not reveal the position of a difference.
fn constant_time_eq<const N: usize>(one: &[u8; N], other: &[u8; N]) -> bool {
    one.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

impl PartialEq for Cookie {
    fn eq(&self, other: &Self) -> bool {
        constant_time_eq(&self.0, &other.0)
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
    fn a_random_cookie_uses_the_alphabet_and_ends_with_nul() {
        let cookie = Cookie::random(entropy());
        assert_eq!(cookie.to_string(), "ahov4dkry7gnu3cjqx6fmt2bipw5elszahov");
        assert_eq!(cookie.as_bytes()[36], 0);
        assert_eq!(cookie.extension_version(), None);
    }

    #[test]
    fn a_cookie_identifies_a_linerate() {
        let cookie = Cookie::linerate(entropy());
        assert_eq!(cookie.to_string(), "lineratea7gnu3cjqx6fmt2bipw5elszahov");
        assert_eq!(cookie.extension_version(), Some(ExtensionVersion::Tests));
        assert!(cookie.as_bytes()[..36].iter().all(|byte| ALPHABET.contains(byte)));
        for version in ExtensionVersion::ALL {
            let mut other = *cookie.as_bytes();
            other[8] = u8::try_from(version.letter()).expect("a letter");
            assert_eq!(Cookie::from_bytes(other).extension_version(), Some(version));
        }
        for letter in [b'd', b'z', b'2', b'A', 0] {
            let mut later = *cookie.as_bytes();
            later[8] = letter;
            assert_eq!(Cookie::from_bytes(later).extension_version(), None, "{letter}");
        }
    }

    #[test]
    fn a_load_connection_names_its_session() {
        let token = SessionToken::random(core::array::from_fn(|index| u8::try_from(index * 9).expect("small")));
        let cookie = Cookie::load(token);
        assert_eq!(cookie.extension_version(), Some(ExtensionVersion::Load));
        assert_eq!(cookie.to_string(), format!("lineratec{token}"));
        assert_eq!(SessionToken::from_characters(*token.as_bytes()), Some(token));
        for (index, wrong) in [(0, b'1'), (26, b'A')] {
            let mut other = *token.as_bytes();
            other[index] = wrong;
            assert_eq!(SessionToken::from_characters(other), None, "byte {index}");
        }
    }

    #[test]
    fn a_cookie_with_a_key_is_of_one_client() {
        let key = AdmissionKey::random(core::array::from_fn(|index| u8::try_from(index * 5).expect("small")));
        assert_eq!(AdmissionKey::from_text(&key.to_string()), Some(key));
        let (plain, cookie) = (Cookie::probes(entropy()), Cookie::probes(entropy()).with_key(&key));
        assert_eq!(cookie.to_string(), format!("linerateb{key}{}", &plain.to_string()[25..]));
        assert!(cookie.has_key(&key) && !plain.has_key(&key));
        assert_eq!(cookie.extension_version(), Some(ExtensionVersion::Probes));
        for index in 0..25 {
            let mut other = *cookie.as_bytes();
            other[index] ^= 1;
            assert!(!Cookie::from_bytes(other).has_key(&key) || index == 8, "byte {index}");
        }
        for wrong in ["", "abcdefghijklmno", "abcdefghijklmnopq", "abcdefghijklmno1", "ABCDEFGHIJKLMNOP"] {
            assert_eq!(AdmissionKey::from_text(wrong), None, "{wrong}");
        }
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
