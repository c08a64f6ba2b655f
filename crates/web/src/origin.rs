//! Recognition of requests that another web site had a browser make, and of names that are not this host's.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{HOST, ORIGIN};

/// True when a browser says that the request comes from another site (`Sec-Fetch-Site`, `Origin`).
pub(crate) fn is_cross_site(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default().to_ascii_lowercase());
    if text("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none") {
        return true;
    }
    let Some(origin) = text(ORIGIN.as_str()) else { return false };
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    authority.is_none() || authority != text(HOST.as_str()).as_deref()
}

/// True when the request names this host by an address, as `localhost`, or by its own name: another name may be one that a
/// stranger has made to point here, so that its pages can read the answers (DNS rebinding).
pub(crate) fn names_this_host(headers: &HeaderMap, own: &str) -> bool {
    let Some(host) = headers.get(HOST).and_then(|value| value.to_str().ok()) else { return false };
    let name = without_port(host).to_ascii_lowercase();
    let name = name.trim_end_matches('.');
    let own = own.to_ascii_lowercase();
    let is_local = |suffix: &str| name.strip_suffix(suffix) == Some(own.as_str());
    let address = name.trim_start_matches('[').trim_end_matches(']');
    address.parse::<IpAddr>().is_ok()
        || name == "localhost"
        || (!own.is_empty() && (name == own || is_local(".local") || is_local(".lan") || is_local(".home.arpa")))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn requests_of_other_sites_are_recognised() {
        for (pairs, cross) in [
            (&[][..], false),
            (&[("sec-fetch-site", "same-origin")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("sec-fetch-site", "same-site")], true),
            (&[("sec-fetch-site", "cross-site")], true),
            (&[("host", "a:8080"), ("origin", "http://a:8080")], false),
            (&[("host", "a:8080"), ("origin", "http://A:8080")], false),
            (&[("host", "a:8080"), ("origin", "http://a:9090")], true),
            (&[("host", "a:8080"), ("origin", "null")], true),
            (&[("origin", "http://a:8080")], true),
        ] {
            assert_eq!(is_cross_site(&headers(pairs)), cross, "{pairs:?}");
        }
    }

    #[test]
    fn only_addresses_and_own_names_are_this_host() {
        for (host, own) in [
            ("192.0.2.1:8080", true),
            ("[2001:db8::1]:8080", true),
            ("localhost:8080", true),
            ("box", true),
            ("BOX.local:8080", true),
            ("box.lan.", true),
            ("box.attacker.example:8080", false),
            ("attacker.example", false),
            ("", false),
        ] {
            assert_eq!(names_this_host(&headers(&[("host", host)]), "box"), own, "{host}");
        }
        assert!(!names_this_host(&HeaderMap::new(), "box"));
    }
}
