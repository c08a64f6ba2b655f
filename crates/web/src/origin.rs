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
    use proptest::prelude::*;

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
            (&[("origin", "null")], true),
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

    #[test]
    fn headers_that_are_no_text_are_of_another_site() {
        let opaque = HeaderValue::from_bytes(b"http://a\xff").expect("opaque bytes");
        for name in ["origin", "sec-fetch-site"] {
            let mut headers = headers(&[("host", "a")]);
            headers.insert(name, opaque.clone());
            assert!(is_cross_site(&headers), "{name}");
        }
        let host = HeaderMap::from_iter([(HOST, opaque)]);
        assert!(!names_this_host(&host, "a"));
    }

    #[test]
    fn addresses_are_recognised_in_every_form() {
        for (host, is_own) in [
            ("::1", true),
            ("[::1]", true),
            ("[::1]:80", true),
            ("LOCALHOST", true),
            ("localhost.", true),
            ("192.0.2.1", true),
            ("192.0.2.1:", true),
            ("192.0.2.1:x", false),
            ("192.0.2", false),
            ("localhost.attacker.example", false),
        ] {
            assert_eq!(names_this_host(&headers(&[("host", host)]), ""), is_own, "{host}");
        }
    }

    proptest! {
        #[test]
        fn an_own_page_is_no_other_site_whatever_its_scheme(
            host in "[a-zA-Z0-9.-]{1,20}|\\[[0-9a-f:]{2,12}\\]", port in proptest::option::of(1..=65535_u16), tls: bool,
        ) {
            let authority = port.map_or(host.clone(), |port| format!("{host}:{port}"));
            let value = |text: String| HeaderValue::try_from(text).expect("text");
            let origin = format!("{}://{}", if tls { "https" } else { "http" }, authority.to_ascii_lowercase());
            let own = HeaderMap::from_iter([(HOST, value(authority.clone())), (ORIGIN, value(origin.clone()))]);
            prop_assert!(!is_cross_site(&own));
            let foreign = HeaderMap::from_iter([(HOST, value(authority)), (ORIGIN, value(format!("{origin}0")))]);
            prop_assert!(is_cross_site(&foreign));
        }

        #[test]
        fn no_domain_of_others_is_this_host(name in "([a-z0-9-]{1,8}\\.){0,3}[a-z]{1,8}", port in "(:[0-9]{1,5})?") {
            let own = ["localhost", "box", "box.local", "box.lan", "box.home.arpa"];
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::try_from(name.clone() + &port).expect("text"))]);
            prop_assert_eq!(names_this_host(&headers, "Box"), own.contains(&name.as_str()));
        }
    }
}
