//! Small files from a web server.

use std::time::Duration;

use ureq::Agent;

use super::otlp_client::{describe, tls_config};

/// Longest time of a request.
const LIMIT: Duration = Duration::from_secs(30);

/// Largest file: a description of some thousand hosts is below it.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Gets a file.
///
/// # Errors
///
/// A sentence without the URL: no connection, an answer that is no file, a file that is too large or no text.
pub(crate) fn download(url: &str) -> Result<String, String> {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(LIMIT))
        .user_agent(concat!("linerate/", env!("CARGO_PKG_VERSION")));
    if url.starts_with("https:") {
        config = config.tls_config(tls_config()?);
    }
    let mut response = config.build().new_agent().get(url).call().map_err(|error| describe(&error))?;
    if response.status().as_u16() != 200 {
        return Err(format!("it answered {}", response.status()));
    }
    response.body_mut().with_config().limit(MAX_FILE_BYTES).read_to_string().map_err(|error| describe(&error))
}
