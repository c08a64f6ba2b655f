use super::*;

const PRIVATE: &str = include_str!("../../../testdata/keys/private_pkcs8.pem");
const PRIVATE_PKCS1: &str = include_str!("../../../testdata/keys/private_pkcs1.pem");
const PUBLIC: &str = include_str!("../../../testdata/keys/public.pem");
const PUBLIC_PKCS1: &str = include_str!("../../../testdata/keys/public_pkcs1.pem");
const USERS: &str = "# from iperf3's manual\nmario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";
const SKEW: Duration = Duration::from_secs(10);

fn at(seconds: u64) -> WallTime {
    WallTime::from_unix(Duration::from_secs(seconds))
}

fn server(padding: RsaPadding) -> Authenticator {
    Authenticator::new(PRIVATE, USERS, padding, SKEW).expect("a good key")
}

fn token(padding: RsaPadding) -> String {
    encrypt_token(PUBLIC, "mario", "rossi", at(1000), padding).expect("a good key")
}

/// Encrypts any text as a token.
fn token_of(text: &[u8]) -> String {
    STANDARD.encode(encrypt(PUBLIC, text, RsaPadding::Oaep).expect("fits"))
}

#[test]
fn both_paddings_and_both_forms_of_keys() {
    for padding in [RsaPadding::Oaep, RsaPadding::Pkcs1] {
        for private in [PRIVATE, PRIVATE_PKCS1] {
            for public in [PUBLIC, PUBLIC_PKCS1] {
                let server = Authenticator::new(private, USERS, padding, SKEW).expect("a good key");
                let token = encrypt_token(public, "mario", "rossi", at(1000), padding).expect("a good key");
                assert_eq!(token.len(), 344);
                assert_eq!(server.check(&token, at(1003)).map(|user| user.to_string()), Ok("mario".to_owned()));
            }
        }
    }
}

#[test]
fn the_other_padding_cannot_be_decrypted() {
    assert_eq!(
        server(RsaPadding::Oaep).check(&token(RsaPadding::Pkcs1), at(1000)),
        Err(AuthenticationError::NotDecryptable)
    );
    assert_eq!(
        server(RsaPadding::Pkcs1).check(&token(RsaPadding::Oaep), at(1000)),
        Err(AuthenticationError::NotDecryptable)
    );
}

#[test]
fn a_token_is_valid_once_and_within_the_skew() {
    let server = server(RsaPadding::Oaep);
    for (now, good) in [(989, false), (990, true), (1010, true), (1011, false)] {
        let answer = server.check(&token(RsaPadding::Oaep), at(now));
        assert_eq!(answer.is_ok(), good, "{now}: {answer:?}");
    }
    let token = token(RsaPadding::Oaep);
    assert!(server.check(&token, at(1005)).is_ok());
    let user = UserName("mario".to_owned());
    assert_eq!(server.check(&token, at(1006)), Err(AuthenticationError::Replayed { user: user.clone() }));
    let late = WallTime::from_unix(Duration::from_millis(1_010_900));
    assert_eq!(server.check(&token, late), Err(AuthenticationError::Replayed { user: user.clone() }));
    let (difference, permitted) = (Duration::from_secs(11), SKEW);
    assert_eq!(server.check(&token, at(1011)), Err(AuthenticationError::Skew { user, difference, permitted }));
}

#[test]
fn wrong_credentials() {
    let server = server(RsaPadding::Oaep);
    for (user, password) in [("mario", "Rossi"), ("mario", ""), ("luigi", "rossi"), ("mario", "rossi\nts:   1")] {
        let token = encrypt_token(PUBLIC, user, password, at(1000), RsaPadding::Oaep).expect("fits");
        let expected = Err(AuthenticationError::WrongCredentials { user: user.to_owned() });
        assert_eq!(server.check(&token, at(1000)), expected, "{user} {password}");
    }
}

#[test]
fn malformed_tokens() {
    let server = server(RsaPadding::Oaep);
    let good = token(RsaPadding::Oaep);
    let broken_line = format!("{}\n{}", &good[..64], &good[64..]);
    let other_block = STANDARD.encode([0x5A; 256]);
    let above_modulus = STANDARD.encode([0xFF; 256]);
    let long = "A".repeat(8192);
    for (token, expected) in [
        ("", AuthenticationError::NoToken),
        ("=", AuthenticationError::NotAToken),
        ("====", AuthenticationError::NotAToken),
        ("A", AuthenticationError::NotAToken),
        ("\u{1b}[2J\0", AuthenticationError::NotAToken),
        ("bm90IGEgYmxvY2s=", AuthenticationError::NotAToken),
        (&good[..340], AuthenticationError::NotAToken),
        (&broken_line, AuthenticationError::NotAToken),
        (&long, AuthenticationError::NotAToken),
        (&other_block, AuthenticationError::NotDecryptable),
        (&above_modulus, AuthenticationError::NotDecryptable),
    ] {
        assert_eq!(server.check(token, at(1000)), Err(expected), "{token}");
    }
}

#[test]
fn texts_that_are_not_credentials() {
    let server = server(RsaPadding::Oaep);
    let longest = [b'x'; 256 - 42];
    for text in [
        &b""[..],
        &longest,
        b"user: mario",
        b"user: mario\npwd:  rossi",
        b"user: mario\npwd:  rossi\nts:   ",
        b"user: mario\npwd:  rossi\nts:   -1",
        b"user: mario\npwd:  rossi\nts:   99999999999999999999",
        b"user: \xff\npwd:  rossi\nts:   1000",
    ] {
        let answer = server.check(&token_of(text), at(1000));
        assert_eq!(answer, Err(AuthenticationError::NotCredentials), "{}", text.escape_ascii());
    }
}

#[test]
fn credentials_that_fill_the_key_exactly() {
    for (padding, capacity) in [(RsaPadding::Oaep, 214), (RsaPadding::Pkcs1, 245)] {
        let overhead = "user: mario\npwd:  \nts:   1000".len();
        let make = |length| encrypt_token(PUBLIC, "mario", &"x".repeat(length), at(1000), padding);
        let full = make(capacity - overhead).expect("fits exactly");
        let answer = server(padding).check(&full, at(1000));
        assert_eq!(answer, Err(AuthenticationError::WrongCredentials { user: "mario".to_owned() }));
        let (needed, available) = (ByteCount::from_usize(capacity + 1), ByteCount::from_usize(capacity));
        assert_eq!(make(capacity - overhead + 1), Err(TokenError::TooLong { needed, available }));
    }
}

#[test]
fn user_names_that_would_break_the_format() {
    for user in ["", "a b", "a\npwd:  x", "a\0"] {
        assert_eq!(encrypt_token(PUBLIC, user, "x", at(1), RsaPadding::Oaep), Err(TokenError::UserName), "{user}");
    }
}

#[test]
fn errors_of_unusable_keys_name_the_remedy() {
    let setup = |pem: &str| {
        let error = Authenticator::new(pem, USERS, RsaPadding::Oaep, SKEW).expect_err("not a usable key");
        error.to_string()
    };
    let keys = [
        (include_str!("../../../testdata/keys/encrypted_pkcs8.pem"), "openssl pkey"),
        (include_str!("../../../testdata/keys/encrypted_pkcs1.pem"), "openssl pkey"),
        (include_str!("../../../testdata/keys/small.pem"), "2048 to 8192 bits"),
        (include_str!("../../../testdata/keys/elliptic_curve.pem"), "2048 to 8192 bits"),
        (PUBLIC, "holds a `PUBLIC KEY` where a `PRIVATE KEY` is needed"),
        ("", "not in PEM form"),
        ("-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----", "not in PEM form"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "was refused"),
    ];
    for (pem, expected) in keys {
        let message = setup(pem);
        assert!(message.contains(expected), "{message}");
    }
    let error = encrypt_token(PRIVATE, "mario", "rossi", at(1), RsaPadding::Oaep).expect_err("not a public key");
    assert!(error.to_string().contains("holds a `PRIVATE KEY` where a `PUBLIC KEY` is needed"), "{error}");
}

#[test]
fn sessions_may_share_one() {
    fn shareable<T: Send + Sync>() {}
    shareable::<Authenticator>();
}

#[test]
fn the_key_is_not_printed() {
    assert_eq!(format!("{:?}", server(RsaPadding::Oaep)), "Authenticator { skew: 10s, .. }");
}

/// Tokens made by OpenSSL, which iperf3 uses.
#[test]
fn tokens_of_openssl_are_accepted() {
    let tokens = [
        (RsaPadding::Oaep, include_str!("../../../testdata/token_oaep.txt")),
        (RsaPadding::Pkcs1, include_str!("../../../testdata/token_pkcs1.txt")),
    ];
    for (padding, token) in tokens {
        assert_eq!(server(padding).check(token, at(10)).map(|user| user.to_string()), Ok("mario".to_owned()));
    }
}
