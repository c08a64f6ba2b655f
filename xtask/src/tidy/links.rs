//! Links of the documents lead somewhere, and the site has every page.

use std::collections::BTreeSet;

use super::{Invariant, InvariantViolation};
use crate::markdown::{anchors, destination, links};
use crate::repository::{Repository, has_extension};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "links",
    statement: "relative links and anchors of the documents resolve; docs/SUMMARY.md has every page of docs",
    check,
};

/// Contents of the site.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Parts of pages, which have the links of the whole.
const FRAGMENTS: &str = "xtask/";

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let is_page = |path: &str| has_extension(path, "md") && !path.starts_with(FRAGMENTS);
    let pages = repository.files().filter(|(path, _)| is_page(path));
    let mut violations: Vec<_> = pages.flat_map(|(path, text)| dead_links(repository, path, text)).collect();
    violations.extend(missing_pages(repository));
    violations
}

fn dead_links(repository: &Repository, page: &str, text: &str) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    for link in links(text) {
        let Some((path, anchor)) = destination(page, &link.target) else { continue };
        let problem = if !repository.has(&path) {
            format!("the link to `{}` leads to {path}, which does not exist", link.target)
        } else if let Some(anchor) = anchor.filter(|anchor| !has_anchor(repository, &path, anchor)) {
            format!("the link to `{}`: {path} has no heading #{anchor}", link.target)
        } else {
            continue;
        };
        violations.push(InvariantViolation::new(page, link.line, problem));
    }
    violations
}

fn has_anchor(repository: &Repository, path: &str, anchor: &str) -> bool {
    has_extension(path, "md") && repository.text(path).is_some_and(|text| anchors(text).contains(anchor))
}

fn missing_pages(repository: &Repository) -> Vec<InvariantViolation> {
    let Some(summary) = repository.text(SUMMARY) else {
        return vec![InvariantViolation::new(SUMMARY, 1, "is missing")];
    };
    let listed: BTreeSet<String> =
        links(summary).iter().filter_map(|link| Some(destination(SUMMARY, &link.target)?.0)).collect();
    let pages = repository.files().map(|(path, _)| path);
    let is_page = |path: &&str| path.starts_with("docs/") && has_extension(path, "md") && *path != SUMMARY;
    pages
        .filter(is_page)
        .filter(|path| !listed.contains(*path))
        .map(|path| InvariantViolation::new(path, 1, format!("is not in {SUMMARY}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NO_VIOLATIONS;

    fn check_pages(page: &str, summary: &str) -> Vec<InvariantViolation> {
        let readme = "# Top\n\n## A heading\n";
        check(&Repository::from_files(&[
            ("docs/a.md", page),
            (SUMMARY, summary),
            ("README.md", readme),
            ("LICENSE", ""),
        ]))
    }

    #[test]
    fn links_to_files_folders_and_headings_pass() {
        let page = "# A\n[b](../README.md#a-heading) [c](#a) [d](https://e.example) [f](../docs) [g](../LICENSE)\n";
        assert_eq!(check_pages(page, "* [A](a.md)\n"), NO_VIOLATIONS);
    }

    #[test]
    fn dead_links_anchors_and_pages_outside_of_the_site_are_reported() {
        let messages = |page: &str, summary: &str| -> Vec<String> {
            check_pages(page, summary).iter().map(ToString::to_string).collect()
        };
        let summary = "* [A](a.md)\n";
        let gone = messages("# A\n\n[b](b.md)\n", summary);
        assert_eq!(gone, ["docs/a.md:3: the link to `b.md` leads to docs/b.md, which does not exist"]);
        let anchor = messages("[b](../README.md#none)\n", summary);
        assert_eq!(anchor, ["docs/a.md:1: the link to `../README.md#none`: README.md has no heading #none"]);
        assert_eq!(messages("# A\n", "# S\n"), ["docs/a.md:1: is not in docs/SUMMARY.md"]);
    }
}
