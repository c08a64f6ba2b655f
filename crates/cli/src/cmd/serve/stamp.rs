//! STAMP options: `--stamp-port`, `--stamp-key-file`, `--stamp-rate`, `--no-stamp`.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use linerate_engine::Error;
use linerate_engine::server::StampOptions;
use linerate_units::{ByteCount, Port};
use linerate_wire::error::ErrorCode;
use linerate_wire::stamp::reflector::ReflectorOptions;
use linerate_wire::stamp::{AuthenticationMode, HmacKey};

use super::ServeArguments;
use crate::console;

/// Shortest key without a warning: a key shorter than its HMAC is easier to guess than the HMAC.
const MIN_KEY_LENGTH: ByteCount = ByteCount::new(16);

/// Options of the STAMP reflector; `None` when it is disabled.
pub(super) fn stamp_options(arguments: &ServeArguments) -> Result<Option<StampOptions>, Error> {
    // A stranger's 14 bytes have 44 in return (RFC 8762 section 4.6).
    let is_for_strangers = arguments.stamp_key_file.is_none() && arguments.stamp_port.is_none();
    if arguments.no_stamp || arguments.stamp_port == Some(0) || (arguments.public && is_for_strangers) {
        return Ok(None);
    }
    let keys = arguments.stamp_key_file.as_deref().map(key).transpose()?;
    let mode = if keys.is_some() { AuthenticationMode::Authenticated } else { AuthenticationMode::Unauthenticated };
    let reflector = ReflectorOptions {
        mode,
        keys: keys.into_iter().collect(),
        rate_per_source: arguments.stamp_rate,
        ..ReflectorOptions::default()
    };
    Ok(Some(StampOptions { port: arguments.stamp_port.and_then(Port::new), reflector }))
}

fn key(path: &Path) -> Result<HmacKey, Error> {
    let failed = |cause: &dyn core::fmt::Display| {
        Error::new(ErrorCode::SERVER_AUTHENTICATION)
            .with_detail(format!("reading the STAMP key {}: {cause}", path.display()))
    };
    let content = std::fs::read(path).map_err(|cause| failed(&cause))?;
    if let Some(warning) = permission_warning(path).map_err(|cause| failed(&cause))? {
        console::note(&warning);
    }
    let key = HmacKey::from_file(&content).map_err(|cause| failed(&cause))?;
    if key.length() < MIN_KEY_LENGTH {
        console::note(&format!(
            "warning: the STAMP key {} has only {} bytes and can be guessed; `openssl rand -hex 32` creates one of 32",
            path.display(),
            key.length().get(),
        ));
    }
    Ok(key)
}

fn permission_warning(path: &Path) -> io::Result<Option<String>> {
    let mode = std::fs::metadata(path)?.mode();
    let readable = mode & 0o077 != 0;
    Ok(readable.then(|| {
        format!(
            "warning: other users can read the STAMP key {} (mode {:03o}); `chmod 600 {0}` keeps it secret",
            path.display(),
            mode & 0o777,
        )
    }))
}
