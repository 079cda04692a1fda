//! Where a database's password may stand, and who can read a database file.

use std::path::Path;

use crate::place::Place;

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Port 1 of the loopback: nothing listens there.
const URL: &str = "postgres://ops:hidden@127.0.0.1:1/app";

#[test]
fn a_password_in_a_flag_is_warned_of_once_and_not_shown() {
    let warned = |place: &Place, args: &[&str]| {
        let ran = place.run(args);
        assert!(!ran.err.contains("hidden") && !ran.out.contains("hidden"), "{ran:?}");
        ran.err.matches("process list").count()
    };
    let place = Place::new();
    let flag = ["config", "show", "--database", URL];
    assert_eq!(warned(&place, &flag), 1);
    let told = place.run(&flag).err;
    for way_out in ["TENURE_DATABASE_URL", "--database-file", "PGPASSWORD", "PGPASSFILE"] {
        assert!(told.contains(way_out), "{way_out}: {told}");
    }
    assert_eq!(warned(&place, &["config", "show", "--database", "postgres://ops@127.0.0.1:1/app"]), 0);
    assert_eq!(warned(&Place::new().with_env("DATABASE_URL", URL), &["config", "show"]), 0);
    assert_eq!(warned(&place, &["bench", "--quick", "--database", URL]), 1);
    let json = place.run(&["config", "show", "--json", "--database", URL]);
    assert!(json.err.starts_with("{\"warning\":"), "{json:?}");
}

#[test]
fn the_url_is_read_from_a_file() {
    let place = Place::new();
    let path = place.write("secret/url", format!("{URL}\n"));
    #[cfg(unix)]
    set_mode(&path, 0o600);
    let ran = place.run(&["config", "show", "--database-file=secret/url"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    assert!(ran.out.contains("postgres://127.0.0.1:1/app") && ran.out.contains("--database-file"), "{}", ran.out);
    let by_env = Place::new().with_env("TENURE_DATABASE_FILE", path.to_str().unwrap());
    let shown = by_env.run(&["config", "show"]).out;
    assert!(shown.contains("postgres://127.0.0.1:1/app") && shown.contains("TENURE_DATABASE_FILE"), "{shown}");
    #[cfg(unix)]
    {
        set_mode(&path, 0o644);
        let told = place.run(&["config", "show", "--database-file=secret/url"]);
        assert!(told.code == 0 && told.err.contains("chmod 600") && !told.err.contains("hidden"), "{told:?}");
    }
    for text in ["hidden", "", "hidden\npostgres://a@b/c", "mysql://ops:hidden@h/db"] {
        place.write("wrong", text);
        let refused = place.run(&["config", "show", "--database-file=wrong"]);
        assert!(refused.code == 2 && refused.err.contains("wrong"), "{text}: {refused:?}");
        assert!(!refused.err.contains("hidden"), "{text}: {}", refused.err);
    }
    assert_eq!(place.run(&["config", "show", "--database-file=none"]).code, 2);
    assert_eq!(place.run(&["config", "show", "--database-file=secret/url", "--database=x.db"]).code, 2);
}

#[cfg(unix)]
#[test]
fn a_service_warns_of_a_database_that_other_users_can_read() {
    let place = Place::new();
    place.enqueue(&["noop", "--database=jobs.db"]);
    let work = || place.run(&["worker", "--once", "--database=jobs.db"]);
    assert!(!work().err.contains("chmod"), "a database that was made here is its owner's alone");
    set_mode(&place.path("jobs.db"), 0o644);
    let warned = work();
    assert!(warned.code == 0 && warned.err.contains("chmod 600") && warned.err.contains("jobs.db"), "{warned:?}");
}
