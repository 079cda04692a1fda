//! Inputs that were made to hurt: nothing panics, nothing takes longer than it is long.
//!
//! The long ones are megabytes: whoever goes back over what was read would be busy for hours.

use links::bookmarks::write::Writer;
use links::bookmarks::{self, Limits};
use links::canonical::{CanonicalUrl, URL_BYTES_MAX};
use links::page::{self, Answer, PAGE_BYTES_MAX, Read};
use links::robots::{Decision, ROBOTS_BYTES_MAX, Robots};
use proptest::prelude::*;

const DECLARATION: &str = "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n";
const LONG: usize = 4 << 20;

/// Pieces that begin something and do not end it.
const OPENINGS: [&str; 18] = [
    "<",
    "<a",
    "<a ",
    "<a href=\"",
    "<a href='\n",
    "<a x=",
    "</",
    "</a",
    "<!--",
    "<!",
    "<?",
    "&",
    "&#",
    "&#x",
    "<h3>",
    "<dd>",
    "<title>",
    "<script>",
];

fn read_page(body: &[u8]) -> Read {
    let url = CanonicalUrl::parse("https://a.example/").expect("an address");
    page::read(&Answer { url: &url, content_type: None, content_language: None, body })
}

#[test]
fn megabytes_of_beginnings_without_an_end_are_read_once() {
    let limits = Limits { folders_max: usize::MAX, ..Limits::default() };
    for opening in OPENINGS {
        let file = format!("{DECLARATION}<DL>{}", opening.repeat(LONG / opening.len()));
        match bookmarks::parse(file.as_bytes(), &limits) {
            Ok(found) => assert_eq!(found.placements.len(), 0, "{opening}"),
            Err(refused) => assert_eq!(refused.field, "title", "{opening}"),
        }
        let body = opening.repeat(PAGE_BYTES_MAX / opening.len());
        assert!(matches!(read_page(body.as_bytes()), Read::Page(_)), "{opening}");
    }
}

#[test]
fn folders_without_end_are_refused_by_their_depth() {
    let file = format!("{DECLARATION}{}", "<DL>".repeat(LONG / 4));
    assert_eq!(bookmarks::parse(file.as_bytes(), &Limits::default()).unwrap_err().field, "depth");
    let file = format!("{DECLARATION}{}", "</DL>".repeat(LONG / 5));
    assert_eq!(bookmarks::parse(file.as_bytes(), &Limits::default()).unwrap().unclosed, 0);
}

#[test]
fn a_small_file_does_not_grow_by_the_paths_of_its_links() {
    let mut file = Writer::new();
    for _ in 0..100 {
        file.open_folder(&"n".repeat(4_000), false);
    }
    for n in 0..50_000 {
        file.link(&format!("http://a.example/{n}"), "", None, None);
    }
    let refused = bookmarks::parse(file.finish().as_bytes(), &Limits::default()).unwrap_err();
    assert_eq!((refused.field, refused.value.as_str()), ("path", "`4000 bytes`"), "{refused}");
}

#[test]
fn a_megabyte_of_icon_is_passed_over() {
    let icon = "A".repeat(1 << 20);
    let file = format!("{DECLARATION}<DL><A ICON=\"data:{icon}\" HREF=\"https://a.example/\">x</A>");
    let found = bookmarks::parse(file.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(found.placements[0].url, "https://a.example/");
}

#[test]
fn patterns_full_of_stars_are_tried_once() {
    let url = CanonicalUrl::parse(&format!("https://a.example/{}", "a".repeat(URL_BYTES_MAX - 30))).unwrap();
    let stars = "*a".repeat(2_000);
    let robots = format!("user-agent: *\n{}", format!("disallow: /{stars}b$\n").repeat(100));
    assert_eq!(Robots::of_answer(200, robots.as_bytes()).decide(&url), Decision::Allowed);
    let robots = format!("user-agent: *\ndisallow: /{}$", "*a".repeat(ROBOTS_BYTES_MAX / 3));
    assert_eq!(Robots::of_answer(200, robots.as_bytes()).decide(&url), Decision::Allowed);
    let robots = format!("user-agent: *\ndisallow: /{stars}$");
    assert_eq!(Robots::of_answer(200, robots.as_bytes()).decide(&url), Decision::Refused);
}

/// Bytes that look like markup.
fn any_markup() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec![
            "<", ">", "\"", "'", "=", "/", "&", ";", "&amp;", "&#x", "&#0;", "\n", " ", "<DL><p>", "</DL>", "<DT>", "<H3>", "</H3>",
            "<A HREF=\"https://a.example/\">", "<A HREF=", "</A>", "javascript:", "http:", "<!--", "-->", "<svg>", "<title>",
            "</title>", "<meta name=description content=", "<script>", "</script>", "<html lang=", "charset=utf-16", "<meta charset=",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        2 => "\\PC{0,8}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_file_makes_the_reader_panic_and_what_it_gives_is_within_the_limits(body in any_markup()) {
        let limits = Limits { links_max: 5, folders_max: 5, depth_max: 3, title_bytes_max: 30, path_bytes_max: 50, url_bytes_max: 40, ..Limits::default() };
        let file = [DECLARATION.as_bytes(), &body].concat();
        match bookmarks::parse(&file, &limits) {
            Ok(found) => {
                prop_assert!(found.placements.len() <= 5 && found.folders.len() <= 5);
                for placement in &found.placements {
                    let path = found.path(placement.folder);
                    prop_assert!(path.len() <= 3 && path.concat().len() <= 50);
                    prop_assert!(placement.title.len() <= 30 && placement.url.len() <= 40);
                    let scheme = placement.url.split(':').next().unwrap_or_default().to_ascii_lowercase();
                    prop_assert!(scheme == "http" || scheme == "https");
                    prop_assert!(!placement.title.chars().chain(placement.url.chars()).any(char::is_control));
                }
            }
            Err(refused) => prop_assert!(["links", "folders", "depth", "title", "path", "url"].contains(&refused.field)),
        }
    }

    #[test]
    fn no_page_makes_the_reader_panic_and_what_it_keeps_is_one_short_line(body in any_markup()) {
        if let Read::Page(page) = read_page(&body) {
            for (text, chars_max) in [(page.title, 300), (page.description, 1_000), (page.language, 35)] {
                let text = text.unwrap_or_else(|| "none".to_owned());
                prop_assert!(!text.is_empty() && text.chars().count() <= chars_max);
                prop_assert!(!text.chars().any(char::is_control) && text.trim() == text);
            }
        }
    }

    #[test]
    fn the_canonical_address_of_a_canonical_address_is_itself(text in any_address()) {
        if let Ok(url) = CanonicalUrl::parse(&text) {
            let again = CanonicalUrl::parse(url.as_str());
            prop_assert_eq!(again.as_ref(), Ok(&url));
            let bare = url.as_url();
            prop_assert_eq!((bare.fragment(), bare.username(), bare.password()), (None, "", None));
            prop_assert!(!url.domain().ends_with('.') && !url.domain().is_empty());
        }
    }

    #[test]
    fn no_robots_file_makes_the_reader_panic(lines in prop::collection::vec("(user-agent|allow|disallow|x)?:?[*$/a%2fF가 #]{0,12}", 0..30)) {
        let url = CanonicalUrl::parse("https://a.example/a/a?a").unwrap();
        let robots = Robots::of_answer(200, lines.join("\n").as_bytes());
        prop_assert_ne!(robots.decide(&url), Decision::Unknown);
    }
}

fn any_address() -> impl Strategy<Value = String> {
    let scheme = prop::sample::select(vec!["http://", "https://", "HTTP:", "https:\\\\", "//", "ftp://"]);
    let user = prop::sample::select(vec!["", "", "u@", "u:p@", "@", "a@b@"]);
    let host = prop_oneof![
        4 => "[a-zA-Z0-9_-]{1,8}(\\.[a-zA-Z0-9가-힣ßİ]{1,6}){0,3}[.]{0,2}",
        1 => "[0-9x.]{1,10}",
        1 => Just("[::FFFF:1.2.3.4]".to_owned()),
        1 => "\\PC{1,6}",
    ];
    let port = prop::sample::select(vec!["", "", ":", ":80", ":443", ":8080", ":0", ":65536"]);
    let path = "(/[a-zA-Z.%2eE가 \\\\;@]{0,5}){0,4}";
    let query = "([?](utm_a|gclid|a|가|&|=|%|'|\"|\\?|;|\\+){0,8})?(#\\PC{0,4})?";
    (scheme, user, host, port, path, query)
        .prop_map(|(scheme, user, host, port, path, query)| format!("{scheme}{user}{host}{port}{path}{query}"))
}
