//! Writing: an export as Chrome makes it, for simulated users and for tests.
//!
//! ```
//! use links::bookmarks::{self, Limits, write::Writer};
//!
//! let mut file = Writer::new();
//! file.open_folder("Recipes", false);
//! file.link("https://bread.example/?a=1&b=2", "Bread & butter", Some(1_700_000_000), None);
//! file.close_folder();
//! let found = bookmarks::parse(file.finish().as_bytes(), &Limits::default())?;
//! assert_eq!(found.path(found.placements[0].folder), ["Recipes"]);
//! # Ok::<(), tenure::Invalid>(())
//! ```

use std::fmt::Write as _;

/// An export that grows.
#[derive(Debug, Clone)]
pub struct Writer {
    text: String,
    open: usize,
}

impl Writer {
    /// One without entries.
    pub fn new() -> Self {
        let text = "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n\
             <META HTTP-EQUIV=\"Content-Type\" CONTENT=\"text/html; charset=UTF-8\">\n\
             <TITLE>Bookmarks</TITLE>\n<H1>Bookmarks</H1>\n<DL><p>\n";
        Self { text: text.to_owned(), open: 0 }
    }

    /// What follows stands in this folder, until it is closed.
    pub fn open_folder(&mut self, name: &str, is_toolbar: bool) {
        let toolbar = if is_toolbar { " PERSONAL_TOOLBAR_FOLDER=\"true\"" } else { "" };
        self.line(format_args!("<DT><H3{toolbar}>{}</H3>", content(name)));
        self.line(format_args!("<DL><p>"));
        self.open += 1;
    }

    /// Ends the folder that was opened last; outside of all it does nothing.
    pub fn close_folder(&mut self) {
        if let Some(open) = self.open.checked_sub(1) {
            self.open = open;
            self.line(format_args!("</DL><p>"));
        }
    }

    /// A link in the folder that is open.
    pub fn link(&mut self, url: &str, title: &str, added_at_s: Option<u64>, icon: Option<&str>) {
        let added = added_at_s.map(|seconds| format!(" ADD_DATE=\"{seconds}\"")).unwrap_or_default();
        let icon = icon.map(|data| format!(" ICON=\"{}\"", value(data))).unwrap_or_default();
        self.line(format_args!("<DT><A HREF=\"{}\"{added}{icon}>{}</A>", value(url), content(title)));
    }

    /// The file; folders that are open are closed.
    pub fn finish(mut self) -> String {
        while self.open > 0 {
            self.close_folder();
        }
        self.text.push_str("</DL><p>\n");
        self.text
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{:width$}{line}", "", width = 4 * (self.open + 1));
    }
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

/// A title, escaped for the place between two tags.
fn content(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

/// A value for the place between two quotes. Chrome escapes the quote and nothing else: the `&` of a query stays.
fn value(text: &str) -> String {
    text.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_looks_as_chrome_writes_it() {
        let mut file = Writer::new();
        file.open_folder("Bar \"&\" more", true);
        file.link("https://a.example/?q=\"x\"&y", "A <b>", Some(7), Some("data:image/png;base64,AA=="));
        let text = file.finish();
        let body: Vec<&str> = text.lines().skip(4).collect();
        let expected = [
            "<DL><p>",
            "    <DT><H3 PERSONAL_TOOLBAR_FOLDER=\"true\">Bar &quot;&amp;&quot; more</H3>",
            "    <DL><p>",
            "        <DT><A HREF=\"https://a.example/?q=&quot;x&quot;&y\" ADD_DATE=\"7\" \
             ICON=\"data:image/png;base64,AA==\">A &lt;b&gt;</A>",
            "    </DL><p>",
            "</DL><p>",
        ];
        assert_eq!(body, expected);
    }

    #[test]
    fn a_folder_that_is_not_open_cannot_be_closed() {
        let mut file = Writer::new();
        file.close_folder();
        assert_eq!(file.finish().matches("</DL>").count(), 1);
    }
}
