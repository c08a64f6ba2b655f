//! Files of the page, compiled in.

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageFile {
    pub(crate) content_type: &'static str,
    pub(crate) content: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Paths and their files.
const FILES: &[(&str, PageFile)] = &[
    ("/", PageFile { content_type: HTML, content: include_str!("../assets/index.html") }),
    ("/page.css", PageFile { content_type: STYLE, content: include_str!("../assets/page.css") }),
    ("/page.js", PageFile { content_type: SCRIPT, content: include_str!("../assets/page.js") }),
    ("/chart.js", PageFile { content_type: SCRIPT, content: include_str!("../assets/chart.js") }),
    ("/worker.js", PageFile { content_type: SCRIPT, content: include_str!("../assets/worker.js") }),
    ("/icon.svg", PageFile { content_type: "image/svg+xml", content: include_str!("../assets/icon.svg") }),
];

/// File of a path.
pub(crate) fn file(path: &str) -> Option<PageFile> {
    FILES.iter().find(|(name, _)| *name == path).map(|(_, file)| *file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy permits files of this server only.
    #[test]
    fn the_page_has_no_inline_code_and_no_external_asset() {
        for (path, file) in FILES {
            for forbidden in [" style=", " onclick=", "javascript:", "https://", "@import", "eval(", "innerHTML"] {
                assert!(!file.content.contains(forbidden), "{path}: {forbidden}");
            }
        }
        let page = file("/").expect("the page").content;
        for tag in ["<script", "<link"] {
            for element in page.match_indices(tag).map(|(at, _)| &page[at..]) {
                let element = element.split_once('>').expect("it is closed").0;
                let (_, target) =
                    element.split_once("src=\"").or_else(|| element.split_once("href=\"")).expect("a file");
                assert!(file(target.split_once('"').expect("quoted").0).is_some(), "{element}");
            }
        }
    }
}
