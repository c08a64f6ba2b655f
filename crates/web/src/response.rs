//! Responses with the headers that all have.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CACHE_CONTROL,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY, RETRY_AFTER,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};
use serde_json::json;

use crate::body::ResponseBody;

/// Content Security Policy of the page: files and answers of this server only.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Policy of a report: without an origin, so that it can ask nothing of this server. What of its own code runs is decided by the
/// policy within the report.
const REPORT_POLICY: &str = "sandbox allow-scripts; frame-ancestors 'none'";

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// A response of the service.
pub(crate) type WebResponse = Response<ResponseBody>;

fn set(response: &mut WebResponse, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

/// A response with this body.
pub(crate) fn respond(status: StatusCode, content_type: &'static str, body: ResponseBody) -> WebResponse {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    set(&mut response, CONTENT_TYPE, content_type);
    set(&mut response, CACHE_CONTROL, "no-store");
    set(&mut response, CONTENT_SECURITY_POLICY, POLICY);
    set(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(&mut response, X_FRAME_OPTIONS, "DENY");
    set(&mut response, REFERRER_POLICY, "no-referrer");
    set(&mut response, RESOURCE_POLICY, "same-origin");
    response
}

pub(crate) fn text(status: StatusCode, content_type: &'static str, text: impl Into<hyper::body::Bytes>) -> WebResponse {
    respond(status, content_type, ResponseBody::text(text))
}

pub(crate) fn json(status: StatusCode, document: &impl serde::Serialize) -> WebResponse {
    // Documents of this crate have no keys that JSON lacks.
    text(status, "application/json; charset=utf-8", serde_json::to_vec(document).unwrap_or_default())
}

/// An HTML page of the history.
pub(crate) fn html(page: String) -> WebResponse {
    text(StatusCode::OK, "text/html; charset=utf-8", page)
}

/// A report, which has its own policy for its own script.
pub(crate) fn report(page: String) -> WebResponse {
    let mut response = html(page);
    set(&mut response, CONTENT_SECURITY_POLICY, REPORT_POLICY);
    response
}

/// A refusal with its reason.
pub(crate) fn refuse(status: StatusCode, reason: &str) -> WebResponse {
    let mut response = json(status, &json!({ "error": reason }));
    if status == StatusCode::SERVICE_UNAVAILABLE || status == StatusCode::TOO_MANY_REQUESTS {
        set(&mut response, RETRY_AFTER, "10");
    }
    response
}

/// A refusal of a method, with those that are possible.
pub(crate) fn refuse_method(allowed: &'static str) -> WebResponse {
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, &format!("this path answers {allowed}"));
    set(&mut response, ALLOW, allowed);
    response
}

/// Lets pages of other sites read the response, as librespeed does when it is asked.
pub(crate) fn share_across_sites(response: &mut WebResponse) {
    set(response, ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    set(response, ACCESS_CONTROL_ALLOW_METHODS, "GET, POST");
    set(response, ACCESS_CONTROL_ALLOW_HEADERS, "Content-Encoding, Content-Type");
    set(response, RESOURCE_POLICY, "cross-origin");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header<'a>(response: &'a WebResponse, name: &str) -> Option<&'a str> {
        let mut values = response.headers().get_all(name).iter();
        let value = values.next().map(|value| value.to_str().expect("text"));
        assert_eq!(values.next(), None, "{name} is there once");
        value
    }

    #[test]
    fn no_answer_is_cached_framed_sniffed_or_read_by_other_sites() {
        for response in [
            text(StatusCode::OK, "text/plain", "a"),
            json(StatusCode::OK, &json!({})),
            refuse(StatusCode::NOT_FOUND, "no such page"),
            refuse_method("GET"),
            html(String::new()),
            report(String::new()),
        ] {
            for (name, value) in [
                ("cache-control", "no-store"),
                ("x-content-type-options", "nosniff"),
                ("x-frame-options", "DENY"),
                ("referrer-policy", "no-referrer"),
                ("cross-origin-resource-policy", "same-origin"),
            ] {
                assert_eq!(header(&response, name), Some(value), "{name}");
            }
            assert_eq!(header(&response, "access-control-allow-origin"), None);
            let policy = header(&response, "content-security-policy").expect("a policy");
            assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        }
    }

    #[test]
    fn a_page_loads_from_this_server_only_and_a_report_has_no_origin() {
        let policy = |response: &WebResponse| header(response, "content-security-policy").map(str::to_owned);
        let page = policy(&html(String::new())).expect("a policy");
        assert!(page.starts_with("default-src 'none';") && !page.contains("sandbox"), "{page}");
        let report = policy(&report(String::new())).expect("a policy");
        assert!(report.starts_with("sandbox allow-scripts;") && !report.contains("allow-same-origin"), "{report}");
    }

    #[test]
    fn a_refusal_has_its_reason_and_whether_to_come_back() {
        for (status, retry) in [
            (StatusCode::SERVICE_UNAVAILABLE, Some("10")),
            (StatusCode::TOO_MANY_REQUESTS, Some("10")),
            (StatusCode::NOT_FOUND, None),
            (StatusCode::GONE, None),
        ] {
            let response = refuse(status, "a \"reason\"");
            assert_eq!((response.status(), header(&response, "retry-after")), (status, retry));
            assert_eq!(header(&response, "content-type"), Some("application/json; charset=utf-8"));
            assert_eq!(response.body().text_length(), Some(r#"{"error":"a \"reason\""}"#.len() as u64));
        }
    }

    #[test]
    fn a_refused_method_is_answered_with_the_possible_ones() {
        let response = refuse_method("GET, HEAD");
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(header(&response, "allow"), Some("GET, HEAD"));
    }

    #[test]
    fn a_shared_answer_is_readable_by_pages_of_any_site() {
        let mut response = text(StatusCode::OK, "text/plain", "");
        share_across_sites(&mut response);
        assert_eq!(header(&response, "access-control-allow-origin"), Some("*"));
        assert_eq!(header(&response, "cross-origin-resource-policy"), Some("cross-origin"));
        assert_eq!(header(&response, "access-control-allow-credentials"), None, "no cookies");
    }
}
