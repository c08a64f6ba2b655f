use core::time::Duration;

use linerate_units::WallTime;

use super::{AuthenticationError, RsaKeyError, RsaPadding, SetupError, TokenError, UserName};

/// Not available in this build: always [`RsaKeyError::NotBuilt`].
pub fn encrypt_token(
    _public_key_pem: &str,
    _user: &str,
    _password: &str,
    _now: WallTime,
    _padding: RsaPadding,
) -> Result<String, TokenError> {
    Err(RsaKeyError::NotBuilt.into())
}

/// Not available in this build.
#[derive(Debug)]
pub struct Authenticator(());

impl Authenticator {
    /// Always [`RsaKeyError::NotBuilt`].
    pub fn new(
        _private_key_pem: &str,
        _users_file: &str,
        _padding: RsaPadding,
        _skew: Duration,
    ) -> Result<Self, SetupError> {
        Err(RsaKeyError::NotBuilt.into())
    }

    /// Always [`AuthenticationError::NotBuilt`].
    pub fn check(&self, _token: &str, _now: WallTime) -> Result<UserName, AuthenticationError> {
        Err(AuthenticationError::NotBuilt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_feature() {
        let token = encrypt_token("", "mario", "rossi", WallTime::default(), RsaPadding::Oaep);
        assert_eq!(token, Err(TokenError::Key(RsaKeyError::NotBuilt)));
        let server = Authenticator::new("", "", RsaPadding::Oaep, Duration::ZERO).expect_err("not in this build");
        assert!(server.to_string().contains("build it with the feature `auth`"), "{server}");
    }
}
