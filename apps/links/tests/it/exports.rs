//! Exports that are generated: big ones, deep ones, and any at all.

use links::bookmarks::write::Writer;
use links::bookmarks::{self, Limits};
use proptest::prelude::*;

#[test]
fn ten_thousand_links_in_forty_nested_folders_are_read_as_they_were_written() {
    let icon = format!("data:image/png;base64,{}", "A".repeat(1_000));
    let (links, depth) = (10_000, 40);
    let mut file = Writer::new();
    for level in 0..depth {
        file.open_folder(&format!("Folder {level}"), level == 0);
        for n in 0..links / depth {
            let url = format!("https://site-{n}.example/page?level={level}&n={n}");
            file.link(&url, &format!("Page {n} & more"), Some(1_700_000_000 + n), Some(&icon));
        }
    }
    let found = bookmarks::parse(file.finish().as_bytes(), &Limits::default()).unwrap();
    assert_eq!(found.placements.len() as u64, links);
    assert_eq!((found.unreadable, found.unclosed, found.skipped.len()), (0, 0, 0));
    let last = found.placements.last().unwrap();
    let path = found.path(last.folder);
    assert_eq!((path.len() as u64, path[0], path[39]), (depth, "Folder 0", "Folder 39"));
    assert_eq!(last.url, "https://site-249.example/page?level=39&n=249");
    assert_eq!((last.title.as_str(), last.added_at_s), ("Page 249 & more", Some(1_700_000_249)));
}

#[derive(Debug, Clone)]
enum Step {
    Open(String, bool),
    Close,
    Link(String, String, Option<u64>),
}

/// A title as it is kept: on one line, without white space around it.
fn any_title() -> impl Strategy<Value = String> {
    "[a-z&<>\"'가-힣;#]{0,8}( [a-z&;<]{1,5}){0,2}".prop_map(|title| title.trim().to_owned())
}

fn any_step() -> impl Strategy<Value = Step> {
    // Without `;` nothing in a query is an entity: Chrome writes none there.
    let url = "https?://[a-z]{1,8}\\.example/[a-z0-9/%&=?'\"<>가-힣]{0,12}[a-z]";
    prop_oneof![
        2 => (any_title(), any::<bool>()).prop_map(|(name, is_toolbar)| Step::Open(name, is_toolbar)),
        2 => Just(Step::Close),
        5 => (url, any_title(), prop::option::of(any::<u64>())).prop_map(|(url, title, at)| Step::Link(url, title, at)),
    ]
}

proptest! {
    #[test]
    fn whatever_is_written_is_read_again(steps in prop::collection::vec(any_step(), 0..60)) {
        let (mut file, mut path, mut expected) = (Writer::new(), Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Open(name, is_toolbar) => {
                    file.open_folder(&name, is_toolbar);
                    path.push(name);
                }
                Step::Close => {
                    file.close_folder();
                    path.pop();
                }
                Step::Link(url, title, at) => {
                    file.link(&url, &title, at, None);
                    expected.push((path.clone(), url, title, at));
                }
            }
        }
        let found = bookmarks::parse(file.finish().as_bytes(), &Limits::default()).unwrap();
        let names = |folder| found.path(folder).into_iter().map(str::to_owned).collect::<Vec<_>>();
        let read: Vec<_> =
            found.placements.iter().map(|p| (names(p.folder), p.url.clone(), p.title.clone(), p.added_at_s)).collect();
        prop_assert_eq!(read, expected);
        prop_assert_eq!((found.unreadable, found.unclosed), (0, 0));
    }
}
