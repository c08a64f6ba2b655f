//! Encryption throughput of one thread.

use core::time::Duration;

use linerate_model::baseline::TimedTransfer;
use linerate_model::fact::Fact;

/// Measures each cipher of today's TLS and SSH for this time, by name.
#[cfg(not(feature = "auth"))]
pub(super) fn measure(_: Duration, _: &(dyn Fn() -> bool + Sync)) -> Vec<(String, Fact<TimedTransfer>)> {
    vec![("AES-GCM".to_owned(), Fact::absent("this linerate was built without ciphers (cargo feature `auth`)"))]
}

/// Measures each cipher of today's TLS and SSH for this time, by name.
#[cfg(feature = "auth")]
pub(super) fn measure(time: Duration, stop: &(dyn Fn() -> bool + Sync)) -> Vec<(String, Fact<TimedTransfer>)> {
    enabled::measure(time, stop)
}

#[cfg(feature = "auth")]
mod enabled {
    use core::time::Duration;

    use aws_lc_rs::aead::{
        AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
    };
    use linerate_model::baseline::TimedTransfer;
    use linerate_model::fact::Fact;
    use linerate_units::ByteCount;

    use super::super::TransferTimer;

    /// Most bytes of a TLS record (RFC 8446, 5.1).
    const MAX_RECORD: usize = 16 << 10;

    pub(super) fn measure(time: Duration, stop: &(dyn Fn() -> bool + Sync)) -> Vec<(String, Fact<TimedTransfer>)> {
        let ciphers: [(&str, &'static Algorithm); 3] =
            [("AES-128-GCM", &AES_128_GCM), ("AES-256-GCM", &AES_256_GCM), ("ChaCha20-Poly1305", &CHACHA20_POLY1305)];
        ciphers.into_iter().map(|(name, cipher)| (name.to_owned(), one(cipher, time, stop))).collect()
    }

    fn one(cipher: &'static Algorithm, time: Duration, stop: &(dyn Fn() -> bool + Sync)) -> Fact<TimedTransfer> {
        if stop() {
            return Fact::default();
        }
        // The ciphertext is discarded, so neither key nor nonces need be secret.
        let key = [7; 32];
        let Ok(key) = UnboundKey::new(cipher, &key[..cipher.key_len()]) else {
            return Fact::failed("the library refuses a key of its own length");
        };
        let key = LessSafeKey::new(key);
        let mut record = vec![0_u8; MAX_RECORD];
        let watch = TransferTimer::start();
        let mut count = 0_u64;
        while (count == 0 || watch.elapsed() < time) && !stop() {
            let mut nonce = [0; 12];
            nonce[4..].copy_from_slice(&count.to_be_bytes());
            let sealed = key.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record);
            if sealed.is_err() {
                return Fact::failed("the library refuses to encrypt a record of 16 KiB");
            }
            count += 1;
        }
        Fact::Known(watch.passage(ByteCount::new(count * MAX_RECORD as u64)))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn whole_records_are_encrypted() {
            let measured = measure(Duration::from_millis(5), &|| false);
            assert_eq!(measured.len(), 3);
            for (name, fact) in measured {
                let bytes = fact.known().expect("measured").bytes.get();
                assert!(bytes > 0 && bytes % MAX_RECORD as u64 == 0, "{name}: {bytes}");
            }
            assert!(measure(Duration::from_secs(1), &|| true).iter().all(|(_, fact)| fact.known().is_none()));
        }
    }
}
