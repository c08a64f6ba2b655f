use core::fmt;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, Pkcs1PrivateDecryptingKey,
    Pkcs1PublicEncryptingKey, PrivateDecryptingKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linerate_units::{ByteCount, WallTime};

use super::replay::{UsedTokens, token_expiry};
use super::users::AuthorizedUsers;
use super::{AuthenticationError, RsaKeyError, RsaPadding, SetupError, TokenError, UserName, pem};

/// Labels of name, password and time in a token; iperf3 aligns the three.
const USER: &str = "user: ";
const PASSWORD: &str = "\npwd:  ";
const TIME: &str = "\nts:   ";

/// Encrypts the token that authenticates a client (iperf3 `encode_auth_setting`).
///
/// `public_key_pem` is the server's public key, `now` the client's clock. With a key of 2048 bits, name, password and
/// time may have 214 bytes (OAEP) or 245 bytes (PKCS #1 v1.5).
pub fn encrypt_token(
    public_key_pem: &str,
    user: &str,
    password: &str,
    now: WallTime,
    padding: RsaPadding,
) -> Result<String, TokenError> {
    if user.is_empty() || user.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(TokenError::UserName);
    }
    let seconds = now.since_unix_epoch().as_secs();
    let credentials = format!("{USER}{user}{PASSWORD}{password}{TIME}{seconds}");
    encrypt(public_key_pem, credentials.as_bytes(), padding).map(|encrypted| STANDARD.encode(encrypted))
}

fn encrypt(public_key_pem: &str, text: &[u8], padding: RsaPadding) -> Result<Vec<u8>, TokenError> {
    let key = pem::public_key(public_key_pem)?;
    let mut encrypted = vec![0; key.key_size_bytes()];
    let check_length = |available: usize| {
        let (needed, available) = (ByteCount::from_usize(text.len()), ByteCount::from_usize(available));
        if needed > available { Err(TokenError::TooLong { needed, available }) } else { Ok(()) }
    };
    let length = match padding {
        RsaPadding::Oaep => {
            let key = OaepPublicEncryptingKey::new(key).map_err(|_| TokenError::Encryption)?;
            check_length(key.max_plaintext_size(&OAEP_SHA1_MGF1SHA1))?;
            key.encrypt(&OAEP_SHA1_MGF1SHA1, text, &mut encrypted, None).map(|block| block.len())
        }
        RsaPadding::Pkcs1 => {
            let key = Pkcs1PublicEncryptingKey::new(key).map_err(|_| TokenError::Encryption)?;
            check_length(key.max_plaintext_size())?;
            key.encrypt(text, &mut encrypted).map(|block| block.len())
        }
    };
    encrypted.truncate(length.map_err(|_| TokenError::Encryption)?);
    Ok(encrypted)
}

enum DecryptionKey {
    Oaep(OaepPrivateDecryptingKey),
    Pkcs1(Pkcs1PrivateDecryptingKey),
}

impl DecryptionKey {
    fn new(key: PrivateDecryptingKey, padding: RsaPadding) -> Result<Self, RsaKeyError> {
        let key = match padding {
            RsaPadding::Oaep => OaepPrivateDecryptingKey::new(key).map(Self::Oaep),
            RsaPadding::Pkcs1 => Pkcs1PrivateDecryptingKey::new(key).map(Self::Pkcs1),
        };
        key.map_err(|error| RsaKeyError::Refused(error.to_string()))
    }

    /// Bytes of an encrypted block.
    fn size(&self) -> usize {
        match self {
            Self::Oaep(key) => key.key_size_bytes(),
            Self::Pkcs1(key) => key.key_size_bytes(),
        }
    }

    /// Decrypts a block; `None` for any error: distinguishable errors would be a decryption oracle.
    fn decrypt(&self, block: &[u8]) -> Option<Vec<u8>> {
        let mut text = vec![0; self.size()];
        let length = match self {
            Self::Oaep(key) => key.decrypt(&OAEP_SHA1_MGF1SHA1, block, &mut text, None).ok()?.len(),
            Self::Pkcs1(key) => key.decrypt(block, &mut text).ok()?.len(),
        };
        text.truncate(length);
        Some(text)
    }
}

/// Verifies clients' tokens on a server. Many sessions may share one.
pub struct Authenticator {
    key: DecryptionKey,
    users: AuthorizedUsers,
    skew: Duration,
    used_tokens: Mutex<UsedTokens>,
}

impl Authenticator {
    /// Creates an authenticator from the private key (PEM, PKCS #8 or PKCS #1, not encrypted) and the users file.
    /// `skew` is the largest permitted difference between a client's clock and this server's.
    pub fn new(
        private_key_pem: &str,
        users_file: &str,
        padding: RsaPadding,
        skew: Duration,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            key: DecryptionKey::new(pem::private_key(private_key_pem)?, padding)?,
            users: AuthorizedUsers::parse(users_file)?,
            skew,
            used_tokens: Mutex::default(),
        })
    }

    /// Verifies a token and returns the user. A token is accepted once only.
    pub fn check(&self, token: &str, now: WallTime) -> Result<UserName, AuthenticationError> {
        if token.is_empty() {
            return Err(AuthenticationError::NoToken);
        }
        let block = STANDARD.decode(token).map_err(|_| AuthenticationError::NotAToken)?;
        if block.len() != self.key.size() {
            return Err(AuthenticationError::NotAToken);
        }
        let text = self.key.decrypt(&block).ok_or(AuthenticationError::NotDecryptable)?;
        let credentials = TokenCredentials::parse(&text).ok_or(AuthenticationError::NotCredentials)?;
        if !self.users.verify(credentials.user, credentials.password.as_bytes()) {
            return Err(AuthenticationError::WrongCredentials { user: credentials.user.to_owned() });
        }
        let user = UserName(credentials.user.to_owned());
        let made_at = credentials.made_at;
        // Whole seconds, as in the token.
        let difference = now.since_unix_epoch().as_secs().abs_diff(made_at.since_unix_epoch().as_secs());
        let difference = Duration::from_secs(difference);
        if difference > self.skew {
            return Err(AuthenticationError::Skew { user, difference, permitted: self.skew });
        }
        // The list is valid even after a panic of a thread that held it.
        let mut tokens = self.used_tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if !tokens.insert(&block, token_expiry(made_at, self.skew), now) {
            return Err(AuthenticationError::Replayed { user });
        }
        Ok(user)
    }
}

impl fmt::Debug for Authenticator {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator").field("skew", &self.skew).finish_non_exhaustive()
    }
}

struct TokenCredentials<'a> {
    user: &'a str,
    password: &'a str,
    made_at: WallTime,
}

impl<'a> TokenCredentials<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let rest = core::str::from_utf8(text).ok()?.strip_prefix(USER)?;
        let (user, rest) = rest.split_once(PASSWORD)?;
        // From the end: a password may contain any text.
        let (password, seconds) = rest.rsplit_once(TIME)?;
        let seconds = seconds.trim_ascii().parse().ok()?;
        Some(Self { user, password, made_at: WallTime::from_unix(Duration::from_secs(seconds)) })
    }
}

#[cfg(test)]
mod tests;
