//! Endpoints of librespeed: download, upload and pings, and the client's address.
//!
//! Parameters and answers are those of its back end, so that its front ends and command-line clients work unchanged.

use std::net::IpAddr;

use serde_json::json;

/// Bytes of a chunk.
const CHUNK: u64 = 1 << 20;

/// Number of chunks by default, and at most.
const DEFAULT_CHUNKS: u64 = 4;
const MAX_CHUNKS: u64 = 1024;

/// One of its endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LibrespeedEndpoint {
    /// A download of random bytes.
    Garbage,
    /// Upload and pings: discards the body, answers nothing.
    Empty,
    /// The client's address.
    Address,
}

impl LibrespeedEndpoint {
    /// Endpoint of a path: with or without `/backend` and `.php`, as existing clients ask.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let name = path.strip_prefix("/backend").unwrap_or(path).strip_prefix('/')?;
        match name.strip_suffix(".php").unwrap_or(name) {
            "garbage" => Some(Self::Garbage),
            "empty" => Some(Self::Empty),
            "getIP" => Some(Self::Address),
            _ => None,
        }
    }
}

/// Bytes of a download: `ckSize` chunks.
pub(crate) fn download_size(chunks: Option<&str>) -> u64 {
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // More digits than a number can have are more than the limit.
    let asked = chunks.filter(is_number).map(|text| text.parse().unwrap_or(u64::MAX));
    CHUNK * asked.filter(|count| *count > 0).unwrap_or(DEFAULT_CHUNKS).min(MAX_CHUNKS)
}

/// The client's address as librespeed reports it.
pub(crate) fn address_document(client: IpAddr) -> String {
    let client = client.to_canonical();
    let kind = match client {
        IpAddr::V4(address) if address.is_loopback() => " - localhost IPv4 access",
        IpAddr::V4(address) if address.is_private() => " - private IPv4 access",
        IpAddr::V4(address) if address.is_link_local() => " - link-local IPv4 access",
        IpAddr::V6(address) if address.is_loopback() => " - localhost IPv6 access",
        IpAddr::V6(address) if address.is_unicast_link_local() => " - link-local IPv6 access",
        IpAddr::V6(address) if address.is_unique_local() => " - ULA IPv6 access",
        _ => "",
    };
    json!({ "processedString": format!("{client}{kind}"), "rawIspInfo": "" }).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn existing_clients_find_their_endpoints() {
        for (path, endpoint) in [
            ("/garbage", Some(LibrespeedEndpoint::Garbage)),
            ("/garbage.php", Some(LibrespeedEndpoint::Garbage)),
            ("/backend/garbage.php", Some(LibrespeedEndpoint::Garbage)),
            ("/backend/empty.php", Some(LibrespeedEndpoint::Empty)),
            ("/empty", Some(LibrespeedEndpoint::Empty)),
            ("/backend/getIP.php", Some(LibrespeedEndpoint::Address)),
            ("/getIP", Some(LibrespeedEndpoint::Address)),
            ("/backendgarbage", None),
            ("/backend/../garbage", None),
            ("/backend/%67arbage.php", None),
            ("garbage", None),
            ("/", None),
        ] {
            assert_eq!(LibrespeedEndpoint::of_path(path), endpoint, "{path}");
        }
    }

    #[test]
    fn downloads_have_the_bounds_of_librespeed() {
        for (text, chunks) in [
            (None, 4),
            (Some(""), 4),
            (Some("0"), 4),
            (Some("-1"), 4),
            (Some("1e3"), 4),
            (Some("1"), 1),
            (Some("1024"), 1024),
            (Some("1025"), 1024),
            (Some("99999999999999999999999"), 1024),
        ] {
            assert_eq!(download_size(text), chunks << 20, "{text:?}");
        }
    }

    #[test]
    fn an_address_is_reported_with_its_kind() {
        for (client, text) in [
            ("127.0.0.1", "127.0.0.1 - localhost IPv4 access"),
            ("::ffff:127.0.0.1", "127.0.0.1 - localhost IPv4 access"),
            ("10.1.2.3", "10.1.2.3 - private IPv4 access"),
            ("169.254.1.1", "169.254.1.1 - link-local IPv4 access"),
            ("::1", "::1 - localhost IPv6 access"),
            ("fe80::1", "fe80::1 - link-local IPv6 access"),
            ("fd00::1", "fd00::1 - ULA IPv6 access"),
            ("192.0.2.1", "192.0.2.1"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            let document: serde_json::Value =
                serde_json::from_str(&address_document(client.parse().expect(client))).expect("JSON");
            assert_eq!(document, json!({ "processedString": text, "rawIspInfo": "" }));
        }
    }

    proptest! {
        #[test]
        fn any_size_is_one_to_1024_chunks(text in "[0-9]{0,24}|[+-]?[0-9]{1,4}|.{0,12}", count in 1..=MAX_CHUNKS) {
            let bytes = download_size(Some(&text));
            prop_assert!(bytes.is_multiple_of(CHUNK) && (1..=MAX_CHUNKS).contains(&(bytes / CHUNK)));
            prop_assert_eq!(download_size(Some(&count.to_string())), count * CHUNK);
        }

        #[test]
        fn no_other_path_is_an_endpoint(path in "(/backend)?/?(garbage|empty|getIP|GARBAGE|x)?(\\.php|\\.html|/)?") {
            let plain = path.strip_prefix("/backend").unwrap_or(&path);
            let names = ["/garbage", "/empty", "/getIP", "/garbage.php", "/empty.php", "/getIP.php"];
            prop_assert_eq!(LibrespeedEndpoint::of_path(&path).is_some(), names.contains(&plain), "{}", path);
        }
    }
}
