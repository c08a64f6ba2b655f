//! Input of mdBook: the pages with their links changed to where their targets are in the site.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context, Result};

use crate::markdown::{destination, links, relative, title};
use crate::repository::{Repository, has_extension};

/// Folder of the pages in the repository.
const DOCS: &str = "docs/";

/// Folder of everything else in the site.
const REPOSITORY: &str = "repository/";

/// Contents of the site.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Configuration of mdBook.
const CONFIGURATION: &str = "book.toml";

/// File of mdBook's input.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourceFile {
    /// Path below the input's folder.
    pub(super) path: String,
    /// Content.
    pub(super) content: FileContent,
}

/// Content of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileContent {
    /// This text.
    Text(String),
    /// Same as the file at this path of the repository.
    CopyOf(String),
}

/// Returns the files: the configuration, the contents, the pages, and what they link.
pub(super) fn files(repository: &Repository) -> Result<Vec<SourceFile>> {
    let configuration = repository.text(CONFIGURATION).context("book.toml is missing")?;
    let summary = repository.text(SUMMARY).context("docs/SUMMARY.md is missing")?;
    let outside = outside(repository);
    let mut files =
        vec![SourceFile { path: CONFIGURATION.to_owned(), content: FileContent::Text(configuration.to_owned()) }];
    let own = repository.paths().filter(|path| path.starts_with(DOCS) && *path != SUMMARY);
    for path in own.chain(outside.iter().map(String::as_str)) {
        files.push(SourceFile {
            path: format!("{DOCS}{}", site_path(repository, path)),
            content: content(repository, path),
        });
    }
    let summary = with_links(repository, SUMMARY, summary) + &appendix(repository, &outside);
    files.push(SourceFile { path: SUMMARY.to_owned(), content: FileContent::Text(summary) });
    Ok(files)
}

/// Path in the site's source, from its root, of a file or folder of the repository.
fn place(path: &str) -> String {
    let page = match path.strip_prefix(DOCS) {
        Some(page) => page.to_owned(),
        None => format!("{REPOSITORY}{path}"),
    };
    // mdBook names such pages so.
    match page.strip_suffix("README.md") {
        Some(folder) => format!("{folder}index.md"),
        _ => page,
    }
}

fn content(repository: &Repository, path: &str) -> FileContent {
    match repository.text(path) {
        Some(text) if has_extension(path, "md") => FileContent::Text(with_links(repository, path, text)),
        None if repository.is_folder(path) => FileContent::Text(listing(repository, path)),
        _ => FileContent::CopyOf(path.to_owned()),
    }
}

/// Files and folders outside of docs that pages link, and those that these link.
fn outside(repository: &Repository) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left: Vec<String> = repository.paths().filter(|path| path.starts_with(DOCS)).map(str::to_owned).collect();
    while let Some(path) = left.pop() {
        let mut targets: Vec<String> = Vec::new();
        if has_extension(&path, "md") {
            let text = repository.text(&path).unwrap_or_default();
            targets.extend(links(text).iter().filter_map(|link| Some(destination(&path, &link.target)?.0)));
        } else if repository.is_folder(&path) {
            targets.extend(members(repository, &path).map(str::to_owned));
        }
        for target in targets {
            let is_own = target.starts_with(DOCS) && !repository.is_folder(&target);
            if !is_own && repository.has(&target) && found.insert(target.clone()) {
                left.push(target);
            }
        }
    }
    found
}

fn members<'a>(repository: &'a Repository, folder: &str) -> impl Iterator<Item = &'a str> {
    let start = format!("{folder}/");
    repository.paths().filter(move |path| path.starts_with(&start))
}

/// Page with the links that hold in the site. Folders have a page that lists them.
fn with_links(repository: &Repository, page: &str, text: &str) -> String {
    let mut shown = text.to_owned();
    for link in links(text).iter().rev() {
        let Some((path, anchor)) = destination(page, &link.target) else { continue };
        let mut target = relative(&place(page), &site_path(repository, &path));
        if let Some(anchor) = anchor {
            let _ = write!(target, "#{anchor}");
        }
        shown.replace_range(link.place.clone(), &target);
    }
    shown
}

fn site_path(repository: &Repository, path: &str) -> String {
    if repository.is_folder(path) { format!("{REPOSITORY}{path}.md") } else { place(path) }
}

/// Page with the files of a folder.
fn listing(repository: &Repository, folder: &str) -> String {
    let page = format!("{REPOSITORY}{folder}.md");
    let rows = members(repository, folder).map(|path| {
        format!("* [{}]({})\n", path.trim_start_matches(folder).trim_start_matches('/'), relative(&page, &place(path)))
    });
    format!("# {folder}\n\n{}", rows.collect::<String>())
}

/// Part of the contents with the pages outside of docs.
fn appendix(repository: &Repository, outside: &BTreeSet<String>) -> String {
    let mut part = "\n# Repository\n\n".to_owned();
    for path in outside {
        let name = match repository.text(path) {
            _ if repository.is_folder(path) => path,
            Some(text) if has_extension(path, "md") => title(text).unwrap_or(path),
            _ => continue,
        };
        let _ = writeln!(part, "* [{name}]({})", site_path(repository, path));
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of<'a>(files: &'a [SourceFile], path: &str) -> &'a str {
        let file = files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("{path} in {files:?}"));
        match &file.content {
            FileContent::Text(text) => text,
            FileContent::CopyOf(_) => panic!("{path} is a copy"),
        }
    }

    #[test]
    fn links_lead_to_where_the_targets_are_in_the_site() {
        let files = files(&Repository::from_files(&[
            (CONFIGURATION, "[book]\n"),
            (SUMMARY, "* [Home](README.md)\n"),
            ("docs/README.md", "[a](guides/a.md) ![p](p.svg)\n"),
            ("docs/guides/a.md", "[b](../../B.md#c) [x](../../x) [home](../README.md)\n"),
            ("docs/p.svg", "<svg/>"),
            ("B.md", "# Bench\n[l](LICENSE) [a](docs/guides/a.md)\n"),
            ("LICENSE", "free"),
            ("x/y.rs", "fn y() {}"),
            ("unlinked.md", ""),
        ]))
        .expect("all files are there");
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert!(!paths.contains(&"docs/repository/unlinked.md"), "{paths:?}");
        assert_eq!(text_of(&files, "docs/index.md"), "[a](guides/a.md) ![p](p.svg)\n");
        let guide = text_of(&files, "docs/guides/a.md");
        assert_eq!(guide, "[b](../repository/B.md#c) [x](../repository/x.md) [home](../index.md)\n");
        assert_eq!(text_of(&files, "docs/repository/B.md"), "# Bench\n[l](LICENSE) [a](../guides/a.md)\n");
        assert_eq!(text_of(&files, "docs/repository/x.md"), "# x\n\n* [y.rs](x/y.rs)\n");
        let copies = [
            ("docs/p.svg", "docs/p.svg"),
            ("docs/repository/LICENSE", "LICENSE"),
            ("docs/repository/x/y.rs", "x/y.rs"),
        ];
        for (path, original) in copies {
            let copy = SourceFile { path: path.to_owned(), content: FileContent::CopyOf(original.to_owned()) };
            assert!(files.contains(&copy), "{path}");
        }
        let summary = text_of(&files, SUMMARY);
        assert_eq!(
            summary,
            "* [Home](index.md)\n\n# Repository\n\n* [Bench](repository/B.md)\n* [x](repository/x.md)\n"
        );
    }
}
