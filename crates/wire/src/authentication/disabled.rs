use core::time::Duration;

use linerate_units::WallTime;

use super::{AuthenticationError, KeyError, Padding, SetupError, TokenError, UserName};

/// Not available in this build: always [`KeyError::NotBuilt`].
pub fn encrypt_token(
    _public_key_pem: &str,
    _user: &str,
    _password: &str,
    _now: WallTime,
    _padding: Padding,
) -> Result<String, TokenError> {
    Err(KeyError::NotBuilt.into())
}

/// Not available in this build.
#[derive(Debug)]
pub struct Authenticator(());

impl Authenticator {
    /// Always [`KeyError::NotBuilt`].
    pub fn new(
        _private_key_pem: &str,
        _users_file: &str,
        _padding: Padding,
        _skew: Duration,
    ) -> Result<Self, SetupError> {
        Err(KeyError::NotBuilt.into())
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
    fn the_answer_says_what_to_do() {
        let token = encrypt_token("", "mario", "rossi", WallTime::default(), Padding::Oaep);
        assert_eq!(token, Err(TokenError::Key(KeyError::NotBuilt)));
        let server = Authenticator::new("", "", Padding::Oaep, Duration::ZERO).expect_err("not in this build");
        assert!(server.to_string().contains("build it with the feature `auth`"), "{server}");
    }
}
