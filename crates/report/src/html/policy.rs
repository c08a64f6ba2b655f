//! Content Security Policy of the page: its own script, its own style, and nothing else.

/// The page's Content Security Policy, for an attribute's value in double quotes: no requests, and only the script and
/// the style with these SHA-256 hashes (Content Security Policy 3 §2.3.1). A test computes the hashes from the page
/// itself and reports the expected ones.
pub(super) const POLICY: &str = "default-src 'none'; \
    script-src 'sha256-frixp7hB6Km1CyPRf/e8mmWjr6FKYpLhpZXn+/PSqtk='; \
    style-src 'sha256-yIoCMYyt10y5OIFfUIb6L/dUvsvygi1CbqRiDlGTM+c='; \
    base-uri 'none'; form-action 'none'";
