//! Checks of the parsers for any input, shared by the fuzz targets and the tests.

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

use super::KeyPin;
use super::identity::{self, SharedKeys};

/// A pin is refused, or printed as it was given.
///
/// # Panics
///
/// When it is neither.
pub fn tls_pin(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    if let Ok(pin) = text.parse::<KeyPin>() {
        assert_eq!(pin.to_string(), text, "printed as given");
    }
}

/// Certificates, private keys and shared keys are refused, or usable.
///
/// # Panics
///
/// When a shared key is refused for another reason than its length.
pub fn tls_key_file(data: &[u8]) {
    let _ = identity::certificates_of(data);
    if let Ok(key) = PrivateKeyDer::from_pem_slice(data) {
        let _ = identity::raw(key);
    }
    assert_eq!(SharedKeys::of(data).is_ok(), data.len() >= 16, "by its length");
}
