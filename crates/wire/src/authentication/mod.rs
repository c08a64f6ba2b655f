//! User names and passwords, encrypted with the server's RSA key (iperf3 `iperf_auth.c`).
//!
//! The client encrypts name, password and time with the server's public key and sends them as `authtoken` in its
//! parameters. The server decrypts the token, looks the user up in its users file, and compares times. Nothing else of
//! the test is encrypted. Within the permitted skew an eavesdropper could replay a token; [`Authenticator`] remembers
//! the tokens of that time and accepts each of them once, which iperf3 does not.
//!
//! RSA and hashes are those of `aws-lc-rs`, in constant time (CVE-2024-26306 was a timing side channel), with its own
//! random numbers for the padding. Without the feature `auth` the same functions exist and return
//! [`RsaKeyError::NotBuilt`].

#[cfg(not(feature = "auth"))]
mod disabled;
#[cfg(feature = "auth")]
mod enabled;
#[cfg(feature = "auth")]
mod pem;
#[cfg(feature = "auth")]
mod replay;
#[cfg(feature = "auth")]
mod users;

use core::fmt;
use core::time::Duration;

use linerate_units::ByteCount;

#[cfg(not(feature = "auth"))]
pub use disabled::{Authenticator, encrypt_token};
#[cfg(feature = "auth")]
pub use enabled::{Authenticator, encrypt_token};

/// Default of the largest permitted difference of the clocks (iperf3 `--time-skew-threshold`).
pub const DEFAULT_SKEW: Duration = Duration::from_secs(10);

/// Padding of the credentials before encryption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RsaPadding {
    /// OAEP with SHA-1 and an empty label (RFC 8017 §7.1): iperf3 since 3.17.
    #[default]
    Oaep,
    /// PKCS #1 v1.5 (RFC 8017 §7.2): iperf3 before 3.17, or with `--use-pkcs1-padding`.
    Pkcs1,
}

/// Name of an authenticated user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserName(String);

impl UserName {
    /// Name as in the users file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A key that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RsaKeyError {
    /// This program was built without the feature `auth`.
    #[error("this linerate was built without authentication: build it with the feature `auth`")]
    NotBuilt,
    /// The key is not PEM.
    #[error("the key is not in PEM form: it should begin with a line like `-----BEGIN {0}-----`")]
    NotPem(&'static str),
    /// The key is encrypted with a password.
    #[error(
        "the private key is protected by a password, which a server cannot type: remove it with \
         `openssl pkey -in key.pem -out plain.pem` and keep the new file readable for the server alone"
    )]
    Encrypted,
    /// PEM of another kind.
    #[error("the file holds a `{found}` where a `{expected}` is needed")]
    WrongKind {
        /// Label of the PEM block.
        found: String,
        /// Label that is required.
        expected: &'static str,
    },
    /// The kind is right, but the key is unusable.
    #[error(
        "the key was refused ({0}): it must be an RSA key of 2048 to 8192 bits, as `openssl genrsa -out key.pem 2048` \
         makes one"
    )]
    Refused(String),
}

/// A token that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The public key cannot be used.
    #[error("cannot use the server's public key: {0}")]
    Key(#[from] RsaKeyError),
    /// The credentials are longer than the key can encrypt.
    #[error(
        "the credentials are too long for the server's key: user name, password and time take {} bytes of {}",
        needed.get(), available.get()
    )]
    TooLong {
        /// Length of the credentials.
        needed: ByteCount,
        /// Maximum length for the key.
        available: ByteCount,
    },
    /// A name that would break the token's format.
    #[error("a user name cannot have white space or control characters in it")]
    UserName,
    /// The library returned an error.
    #[error("RSA encryption failed")]
    Encryption,
}

/// A server's authentication that cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The private key cannot be used.
    #[error("cannot use the RSA private key: {0}")]
    Key(#[from] RsaKeyError),
    /// Invalid line of the users file.
    #[error(
        "line {line} of the authorized users file is not `NAME,HASH`: HASH is the SHA-256 of `{{NAME}}PASSWORD` in 64 \
         hexadecimal digits, as `echo -n \"{{NAME}}PASSWORD\" | sha256sum` prints it"
    )]
    UsersLine {
        /// Line number, from 1.
        line: usize,
    },
}

/// Reason why a client was refused. The client receives [`crate::error::ErrorCode::AUTHORIZATION`] only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthenticationError {
    /// This program was built without the feature `auth`.
    #[error("{}", RsaKeyError::NotBuilt)]
    NotBuilt,
    /// The client sent no token.
    #[error("the client sent no authentication token (it needs --username and --rsa-public-key-path)")]
    NoToken,
    /// The token is not Base64 of a block with the length of the key.
    #[error("the client's authentication token is not Base64 of one block for this server's key")]
    NotAToken,
    /// Decryption failed.
    #[error(
        "the client's authentication token cannot be decrypted: it was made with another public key or another \
         padding (iperf3 before 3.17 needs --use-pkcs1-padding on this server)"
    )]
    NotDecryptable,
    /// The decrypted text is not credentials.
    #[error("the client's authentication token does not hold a user name, a password and a time")]
    NotCredentials,
    /// No such user, or another password.
    #[error("user `{}` is not known or has another password", user.escape_debug())]
    WrongCredentials {
        /// The name that the client gave.
        user: String,
    },
    /// The clocks differ too much.
    #[error(
        "the clock of user `{user}` differs from this server's by {} s, more than the {} s permitted: set the clocks, \
         or raise --time-skew-threshold", difference.as_secs(), permitted.as_secs()
    )]
    Skew {
        /// Name of the user.
        user: UserName,
        /// Difference of the clocks.
        difference: Duration,
        /// Largest permitted difference.
        permitted: Duration,
    },
    /// The token was used before.
    #[error("user `{user}` presented a token that was used before")]
    Replayed {
        /// Name of the user.
        user: UserName,
    },
}
