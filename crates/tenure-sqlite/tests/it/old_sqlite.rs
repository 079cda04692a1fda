//! Files of ours are read by programs with an older SQLite: Debian 12 and its Python 3.11 have 3.40. One view they cannot
//! parse would close the whole file to them.

use std::path::Path;
use std::process::Command;

use crate::fixture::Fixture;

/// Applies every migration, so that its syntax and functions are known; then reads every table and view of a file.
const READ_ALL: &str = r#"
import pathlib, sqlite3, sys
print(sqlite3.sqlite_version)
empty = sqlite3.connect(":memory:")
for file in sorted(pathlib.Path(sys.argv[2]).glob("*.sql")):
    try:
        empty.executescript(file.read_text())
    except sqlite3.Error as error:
        sys.exit(f"{file.name}: {error}")
db = sqlite3.connect(sys.argv[1])
for name, in db.execute("select name from sqlite_master where type in ('table', 'view') order by name").fetchall():
    try:
        print(name, len(db.execute(f'select * from "{name}"').fetchall()))
    except sqlite3.Error as error:
        sys.exit(f"{name}: {error}")
print(db.execute("select state, count(*) from jobs group by state order by state").fetchall())
print(db.execute("select locked_by, attempts, lease, heartbeat_at is not null from jobs where state = 'running'").fetchall())
db.execute("insert into worker (name, started_at, queues) values ('other', 0, '[[\"mail\",4],[\"default\",1]]')")
print(db.execute("select queues from workers where name = 'other'").fetchall())
"#;

#[tokio::test]
async fn a_file_is_read_by_the_systems_python() {
    let fixture = Fixture::file().await;
    fixture.enqueue(3).await;
    fixture.claim(1).await.unwrap();
    let file = fixture.directory.as_ref().unwrap().file();
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let read = Command::new("python3").args(["-c", READ_ALL]).arg(&file).arg(migrations).output();
    let read = read.expect("python3 is installed");
    let (said, errors) = (String::from_utf8_lossy(&read.stdout), String::from_utf8_lossy(&read.stderr));
    println!("{said}");
    assert!(read.status.success(), "{errors}");
    assert!(said.contains("[('queued', 2), ('running', 1)]"), "{said}");
    assert!(said.contains("1, 1)]") && said.contains("[('mail=4, default=1',)]"), "{said}");
}

/// What the system's Python cannot show once it has a newer SQLite: words that came after 3.40.
#[test]
fn the_schema_uses_nothing_newer_than_sqlite_3_40() {
    const NEWER: [&str; 11] = [
        "unhex(",        // 3.41
        "octet_length(", // 3.43
        "timediff(",     // 3.43
        "concat(",       // 3.44, and group_concat with `order by` inside
        "concat_ws(",
        "string_agg(",
        "json_pretty(", // 3.46
        "jsonb(",       // 3.45
        "jsonb_",
        "unistr(",
        "iif(", // with two arguments: 3.48
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap().to_lowercase();
        let code: String =
            text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
        let code = code.replace("group_concat(", "group_concat (");
        for word in NEWER {
            assert!(!code.contains(word), "{}: `{word}` is newer than SQLite 3.40", path.display());
        }
        for call in code.split("group_concat (").skip(1) {
            let arguments = arguments(call);
            assert!(!arguments.contains("order by"), "{}: group_concat({arguments})", path.display());
        }
    }
}

/// Up to the bracket that closes the call.
fn arguments(call: &str) -> &str {
    let mut depth = 1;
    for (at, character) in call.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &call[..at];
        }
    }
    call
}
