//! Content Security Policy of the page: its own script, its own style, and nothing else.

/// The page's Content Security Policy, for an attribute's value in double quotes: no requests, and only the script and
/// the style with these SHA-256 hashes (Content Security Policy 3 §2.3.1). A test computes the hashes from the page
/// itself and reports the expected ones.
pub(super) const POLICY: &str = "default-src 'none'; \
    script-src 'sha256-6YDqV7/FUaeedO71a1qfio7WTWXlo4smmiH2znlYVEw='; \
    style-src 'sha256-Cg3ywof3RHUXtCIdAH3AjQgxfmbkb/urdOLwn+X5OUU='; \
    base-uri 'none'; form-action 'none'";

/// Policy of the page of a fleet, which has more of both.
pub(super) const FLEET_POLICY: &str = "default-src 'none'; \
    script-src 'sha256-Ltch8ydb4h02u7mCytBtmOSv5Sr1wuxeooNcAizWXyk='; \
    style-src 'sha256-XzXeXjhlIlHEwZt7wB9TIVPKCIQjJXNFCUYufBuAM3g='; \
    base-uri 'none'; form-action 'none'";
