//! Bookmark files: what Chrome writes when a user exports, and what we read of it.
//!
//! ```text
//!   <!DOCTYPE NETSCAPE-Bookmark-file-1>          without it the file is refused
//!   <DL><p>
//!       <DT><H3 ADD_DATE="…">Recipes</H3>        a folder, and the list of what is in it
//!       <DL><p>
//!           <DT><A HREF="…" ADD_DATE="…" ICON="data:…">Bread</A>
//!       </DL><p>
//!   </DL><p>
//! ```
//!
//! The same address may stand in many folders: each is a [`Placement`] of its own, and nothing is folded here. Only
//! `http` and `https` are links; `javascript:`, `chrome:`, `data:` and the like are counted and left out. Other browsers
//! write the same format, with descriptions and icons that are passed over.
//!
//! A file that was cut or edited gives what can be read of it, and [`Bookmarks::unreadable`] counts the rest. A folder
//! without an end lasts to the end of the file, a title without one to the next entry, a quote without one to the end of
//! its line. A file that is beyond a limit is refused as a whole, so that nobody wonders later what is missing.

mod read;
pub mod write;

use std::collections::BTreeMap;

use tenure::Invalid;

/// What stands in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bookmarks {
    /// Every folder; one that holds another comes before it.
    pub folders: Vec<Folder>,
    /// Every link, where it stands, in the order of the file.
    pub placements: Vec<Placement>,
    /// Entries that are no links, by scheme: those of [`SCHEMES_SKIPPED`], and `other`.
    pub skipped: BTreeMap<&'static str, usize>,
    /// Places that could not be read: tags without an end, entries without an address.
    pub unreadable: usize,
    /// Folders that were open where the file ended, the outermost list among them. More than none: the file may be cut.
    pub unclosed: usize,
}

/// A folder's place in [`Bookmarks::folders`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FolderNo(usize);

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The folder that it stands in; none for the outermost.
    pub parent: Option<FolderNo>,
    /// What it is called, on one line.
    pub name: String,
    /// Whether it is the bar below the address line.
    pub is_toolbar: bool,
}

/// A link in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The folder; none when it stands outside of all.
    pub folder: Option<FolderNo>,
    /// The address as the file has it, entities decoded: `http:` or `https:`, and not checked any further.
    pub url: String,
    /// What the user calls it, on one line; may be empty.
    pub title: String,
    /// When it was added, in seconds since 1970, if the file says so.
    pub added_at_s: Option<u64>,
}

/// Schemes that are counted by name when they are left out.
pub const SCHEMES_SKIPPED: [&str; 10] =
    ["about", "blob", "chrome", "chrome-extension", "data", "edge", "file", "ftp", "javascript", "mailto"];
/// The name under which all others are counted.
const OTHER: &str = "other";

/// How much a file may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Of the file. Icons are most of it.
    pub bytes_max: usize,
    /// Links, wherever they stand.
    pub links_max: usize,
    /// Folders.
    pub folders_max: usize,
    /// Folders inside of each other.
    pub depth_max: usize,
    /// Of one address.
    pub url_bytes_max: usize,
    /// Of one title, or of a folder's name.
    pub title_bytes_max: usize,
    /// Of the names of a folder and of all those around it: every link in it is stored with them.
    pub path_bytes_max: usize,
}

impl Default for Limits {
    /// 64 MiB, 50,000 links in 10,000 folders that are 100 deep, addresses of 8 KiB, titles of 4 KiB and paths of 2 KiB.
    fn default() -> Self {
        Self {
            bytes_max: 64 << 20,
            links_max: 50_000,
            folders_max: 10_000,
            depth_max: 100,
            url_bytes_max: crate::canonical::URL_BYTES_MAX,
            title_bytes_max: 4 << 10,
            path_bytes_max: 2 << 10,
        }
    }
}

/// What stands in the file. Bytes that are no UTF-8 are replaced.
///
/// Refuses a file that is no bookmark file or is beyond a limit; the message says where and what to do.
pub fn parse(file: &[u8], limits: &Limits) -> Result<Bookmarks, Invalid> {
    if file.len() > limits.bytes_max {
        let limit = format!(
            "a bookmark file has at most {} bytes; export fewer folders at a time, or remove the ICON attributes",
            limits.bytes_max
        );
        return Err(Invalid::new("file", format!("{} bytes", file.len()), limit));
    }
    read::read(&String::from_utf8_lossy(file), limits)
}

impl Bookmarks {
    /// The names from the outermost folder to this one; empty outside of all.
    pub fn path(&self, folder: Option<FolderNo>) -> Vec<&str> {
        let mut names = Vec::new();
        let mut at = folder;
        while let Some(folder) = at.and_then(|no| self.folders.get(no.0)) {
            names.push(folder.name.as_str());
            // A folder stands behind its parent, so this ends; a value that somebody made by hand may not obey.
            at = folder.parent.filter(|parent| Some(*parent) < at);
        }
        names.reverse();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<!-- Written by a\n browser. -->\n\
        <META HTTP-EQUIV=\"Content-Type\" CONTENT=\"text/html; charset=UTF-8\">\n\
        <TITLE>Bookmarks</TITLE>\n<H1>Bookmarks</H1>\n";

    /// What is read of a file with this inside: `folder/folder: url (title)` per link.
    fn lines(inside: &str) -> (Bookmarks, Vec<String>) {
        let file = format!("{HEAD}{inside}");
        let found = parse(file.as_bytes(), &Limits::default()).unwrap();
        let show = |p: &Placement| format!("{}: {} ({})", found.path(p.folder).join("/"), p.url, p.title);
        let lines = found.placements.iter().map(show).collect();
        (found, lines)
    }

    #[test]
    fn an_export_of_chrome_is_read_with_its_folders() {
        let icon = format!("data:image/png;base64,{}", "iVBORw0KGgo".repeat(1_000));
        let (found, links) = lines(&format!(
            "<DL><p>\n    <DT><H3 ADD_DATE=\"1700000000\" LAST_MODIFIED=\"1700000001\" \
             PERSONAL_TOOLBAR_FOLDER=\"true\">Bookmarks bar</H3>\n    <DL><p>\n\
             <DT><A HREF=\"https://a.example/?x=1&y=2\" ADD_DATE=\"1700000002\" ICON=\"{icon}\">A &amp; B</A>\n\
             <DT><H3>Deep &lt;er&gt;</H3>\n<DL><p>\n<DT><A HREF=\"http://b.example/\">이름</A>\n</DL><p>\n\
             <DT><A HREF=\"https://c.example/\"></A>\n    </DL><p>\n\
             <DT><A HREF=\"https://d.example/\">outside</A>\n</DL><p>\n"
        ));
        let expected = [
            "Bookmarks bar: https://a.example/?x=1&y=2 (A & B)",
            "Bookmarks bar/Deep <er>: http://b.example/ (이름)",
            "Bookmarks bar: https://c.example/ ()",
            ": https://d.example/ (outside)",
        ];
        assert_eq!(links, expected);
        assert_eq!(found.folders.iter().map(|f| f.is_toolbar).collect::<Vec<_>>(), [true, false]);
        assert_eq!(found.placements[0].added_at_s, Some(1_700_000_002));
        assert_eq!((found.unreadable, found.unclosed, found.skipped.len()), (0, 0, 0));
    }

    /// Shows: S1.23
    #[test]
    fn a_link_in_two_folders_is_two_placements() {
        let link = "<DT><A HREF=\"https://a.example/\">again</A>";
        let (_, links) =
            lines(&format!("<DL><DT><H3>One</H3><DL>{link}{link}</DL><DT><H3>Two</H3><DL>{link}</DL></DL>"));
        assert_eq!(links.len(), 3);
        assert!(links[2].starts_with("Two: "), "{links:?}");
    }

    #[test]
    fn what_is_no_link_is_left_out_and_counted_by_scheme() {
        let entry = |url: &str| format!("<DT><A HREF=\"{url}\">x</A>\n");
        let urls = ["JavaScript:alert(1)", "javascript:void(0)", "chrome://settings/", "data:text/html,x", "place:x=1"];
        let entries: String = urls.iter().map(|url| entry(url)).collect();
        // A bookmarklet may be longer than an address.
        let long = entry(&format!("javascript:{}", "x".repeat(100_000)));
        let (found, links) = lines(&format!("<DL><p>{entries}{long}{}</DL>", entry("HTTPS://A.example")));
        assert_eq!(links, [": HTTPS://A.example (x)"]);
        let counted = [("chrome", 1), ("data", 1), ("javascript", 3), ("other", 1)];
        assert_eq!(found.skipped, BTreeMap::from(counted));
        assert_eq!(found.unreadable, 0);
    }

    #[test]
    fn tags_may_be_of_any_case_and_without_an_end() {
        let (found, links) = lines(
            "<dl>\n<dt><h3>One\n<dl>\n<dt><a href='http://a.example/' add_date=soon>first <b>bold</b>\n\
             <dt><a href=http://b.example/>second\n<dd>not a title\n<hr>\n\
             <dt><h3>Empty</h3>\n<dt><a href=http://c.example/>third</dl>\n<dt><a href=http://d.example/>",
        );
        let expected = [
            "One: http://a.example/ (first bold)",
            "One: http://b.example/ (second)",
            "One: http://c.example/ (third)",
            ": http://d.example/ ()",
        ];
        assert_eq!(links, expected);
        assert_eq!((found.unreadable, found.unclosed, found.placements[0].added_at_s), (0, 1, None));
        assert_eq!(found.path(Some(FolderNo(1))), ["One", "Empty"]);
    }

    #[test]
    fn a_list_that_no_heading_names_belongs_to_the_folder_around_it() {
        let link = "<a href=http://a.example/>x</a>";
        let (_, links) = lines(&format!("<dl><h3>F</h3><dl><dl>{link}</dl><h3>Empty</h3>{link}<dl>{link}"));
        assert_eq!(links, ["F: http://a.example/ (x)"; 3]);
    }

    #[test]
    fn what_cannot_be_read_is_counted_and_the_rest_is_there() {
        let (found, links) = lines(
            "<DL><p>\n<DT><A HREF=\"https://a.example/>no quote</A>\n<DT><A HREF=\"https://b.example/\">good</A>\n\
             <DT><A>no address</A>\n<DT><A HREF=\"\">empty</A>\n<DT><A HREF=\"relative/path\">no scheme</A>\n\
             <DT><A HREF=\"http://c.example/\u{1}\">control</A>\n</DL></DL></DL>\n\
             <DT><A HREF=\"https://d.example/\">behind the end</A>",
        );
        assert_eq!(links, [": https://b.example/ (good)", ": https://d.example/ (behind the end)"]);
        assert_eq!(found.unreadable, 5);
    }

    #[test]
    fn a_file_that_was_cut_anywhere_gives_the_links_before_the_cut() {
        let file = format!(
            "{HEAD}<DL><p>\n<DT><H3>F</H3>\n<DL><p>\n<DT><A HREF=\"https://a.example/\">a</A>\n\
             <DT><A HREF=\"https://b.example/\">b</A>\n</DL><p>\n</DL><p>\n"
        );
        let ends = |needle: &str| file.find(needle).unwrap() + needle.len();
        let (first, second) = (ends("a.example/\">"), ends("b.example/\">"));
        for cut in ends("file-1>")..=file.len() {
            let found = parse(&file.as_bytes()[..cut], &Limits::default()).unwrap();
            let links = usize::from(cut >= first) + usize::from(cut >= second);
            assert_eq!(found.placements.len(), links, "{}", &file[..cut]);
            assert!(found.unreadable <= 1);
        }
    }

    #[test]
    fn a_file_that_is_no_bookmark_file_is_refused() {
        for file in ["", "<html><a href='https://a.example/'>x</a></html>", "{\"roots\":{}}", "<!DOCTYPE html><DL>"] {
            let refused = parse(file.as_bytes(), &Limits::default()).unwrap_err();
            assert_eq!(refused.field, "file", "{file}");
            assert!(refused.limit.contains("Export bookmarks"), "{refused}");
        }
        for head in ["\u{feff}<!DOCTYPE NETSCAPE-Bookmark-file-1>", " \r\n<!doctype  netscape-bookmark-file-1>"] {
            assert_eq!(parse(head.as_bytes(), &Limits::default()), Ok(Bookmarks::default()), "{head}");
        }
    }

    #[test]
    fn every_limit_is_refused_by_a_message_with_field_value_and_way_out() {
        let tight = Limits {
            bytes_max: 1_000,
            links_max: 2,
            folders_max: 3,
            depth_max: 2,
            url_bytes_max: 20,
            title_bytes_max: 6,
            path_bytes_max: 8,
        };
        let link = "<DT><A HREF=\"http://a.example/123\">sixth!</A>\n";
        let folder = "<DT><H3>f</H3><DL>";
        let (long_url, long_title) = ("http://a.example/1234", "seventh");
        for (inside, field, value, way_out) in [
            ("x".repeat(1_000), "file", "`1036 bytes`", "export fewer"),
            (link.repeat(3), "links", "`3`", "split"),
            ("<DT><H3>f</H3>".repeat(4), "folders", "`4`", "split"),
            (format!("<DL>{}", folder.repeat(3)), "depth", "`3`", "line 2: "),
            (format!("<A HREF={long_url}>"), "url", "`http://a.example/1234`", "remove or shorten"),
            (format!("\n<A HREF=http://a>{long_title}</A>"), "title", "`seventh`", "line 3: "),
            (format!("<H3>{long_title}</H3>"), "title", "`seventh`", "rename"),
            (format!("<DL><H3>folder</H3><DL>\n<H3>abc</H3>{link}"), "path", "`9 bytes`", "line 3: "),
        ] {
            let file = format!("<!DOCTYPE NETSCAPE-Bookmark-file-1>\n{inside}");
            let refused = parse(file.as_bytes(), &tight).unwrap_err();
            assert_eq!((refused.field, refused.value.as_str()), (field, value), "{refused}");
            assert!(refused.limit.contains(way_out), "{refused}");
        }
        let at_the_limits = format!("<DL><H3>folder</H3><DL><H3>ab</H3><DL>{}", link.repeat(2));
        let file = format!("<!DOCTYPE NETSCAPE-Bookmark-file-1>\n{at_the_limits}");
        assert_eq!(parse(file.as_bytes(), &tight).unwrap().placements.len(), 2);
    }

    #[test]
    fn bytes_that_are_no_utf8_cost_an_address_but_not_a_title() {
        let mut file = HEAD.as_bytes().to_vec();
        file.extend(b"<A HREF=\"http://a.example/\xff\">x</A><A HREF=\"http://b.example/\">caf\xe9</A>");
        let found = parse(&file, &Limits::default()).unwrap();
        assert_eq!((found.placements.len(), found.unreadable), (1, 1));
        assert_eq!(found.placements[0].title, "caf\u{fffd}");
    }
}
