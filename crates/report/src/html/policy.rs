//! What the page may do: run its own script, use its own style, and nothing else.

/// The page's Content Security Policy, for an attribute's value in double quotes: no request at all, and only the script and
/// the style with these SHA-256 hashes (Content Security Policy 3 §2.3.1). A test computes the hashes from the page itself
/// and says which ones belong here.
pub(super) const POLICY: &str = "default-src 'none'; \
    script-src 'sha256-RC/0AnjtylFIaeT7eE8NM7UpOuHQuTh4LPOHB7QuUxw='; \
    style-src 'sha256-yIoCMYyt10y5OIFfUIb6L/dUvsvygi1CbqRiDlGTM+c='; \
    base-uri 'none'; form-action 'none'";
