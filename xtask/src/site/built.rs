//! Check of the built site: links lead to its files and headings, and nothing is loaded from elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::markdown::destination;
use crate::repository::has_extension;

/// Page for a server's errors; its links begin at the server's root.
const ERROR_PAGE: &str = "404.html";

/// Returns a line for each dead link, and for each file from elsewhere.
pub(super) fn check(site: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    collect(site, site, &mut files)?;
    let mut pages = BTreeMap::new();
    for path in files.iter().filter(|path| has_extension(path, "html") && *path != ERROR_PAGE) {
        let text = fs::read_to_string(site.join(path)).with_context(|| format!("cannot read {path}"))?;
        pages.insert(path.as_str(), text);
    }
    let files: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    Ok(problems(&files, &pages))
}

fn collect(site: &Path, folder: &Path, files: &mut Vec<String>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path: PathBuf = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if path.is_dir() {
            collect(site, &path, files)?;
        } else {
            let name = path.strip_prefix(site).unwrap_or(&path);
            files.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

fn problems(files: &BTreeSet<&str>, pages: &BTreeMap<&str, String>) -> Vec<String> {
    let ids: BTreeMap<&str, BTreeSet<&str>> =
        pages.iter().map(|(path, text)| (*path, values(text, "id").collect())).collect();
    let mut problems = Vec::new();
    for (page, text) in pages {
        for source in values(text, "src").filter(|source| source.contains("//")) {
            problems.push(format!("{page}: loads {source}"));
        }
        for target in values(text, "href").chain(values(text, "src")) {
            let Some((path, anchor)) = destination(page, target) else { continue };
            if !files.contains(path.as_str()) {
                problems.push(format!("{page}: {target} leads to {path}, which the site lacks"));
            } else if let (Some(anchor), Some(ids)) = (anchor, ids.get(path.as_str()))
                && !anchor.is_empty()
                && !ids.contains(anchor.as_str())
            {
                problems.push(format!("{page}: {target}: {path} has no #{anchor}"));
            }
        }
    }
    problems
}

/// Values of an attribute in a page.
fn values<'a>(text: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {attribute}=\"");
    let found: Vec<usize> = text.match_indices(&start).map(|(index, _)| index + start.len()).collect();
    found.into_iter().filter_map(|from| text[from..].split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_and_foreign_files_are_reported() {
        let a = "<h1 id=\"top\"><a href=\"b/c.html#d\"></a><a href=\"b/c.html#no\"></a><a href=\"gone.html\"></a>\
                 <a href=\"https://e.example\"></a><script src=\"https://f.example/g.js\"></script>";
        let pages = BTreeMap::from([
            ("a.html", a.to_owned()),
            ("b/c.html", "<p id=\"d\" ><a href=\"../a.html#top\">".to_owned()),
        ]);
        let files = BTreeSet::from(["a.html", "b/c.html"]);
        let expected = [
            "a.html: loads https://f.example/g.js",
            "a.html: b/c.html#no: b/c.html has no #no",
            "a.html: gone.html leads to gone.html, which the site lacks",
        ];
        assert_eq!(problems(&files, &pages), expected);
    }
}
