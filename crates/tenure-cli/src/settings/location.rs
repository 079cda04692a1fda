//! Where jobs are kept: a Postgres server or one SQLite file.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use tenure_core::Invalid;

use crate::failure::Failure;

/// Name of the embedded store's file in the data directory.
const FILE_NAME: &str = "tenure.db";

/// A store that can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    Sqlite(PathBuf),
    /// The whole URL, password included: never shown as it is.
    Postgres(String),
}

impl Location {
    /// Whether somebody else keeps it running.
    pub(crate) const fn is_server(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Whether its URL holds a password.
    pub(crate) fn has_password(&self) -> bool {
        let Self::Postgres(url) = self else { return false };
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        let user = rest.rsplit_once('@').map_or("", |(user, _)| user);
        user.contains(':') || rest.split(['?', '&']).skip(1).any(|parameter| parameter.starts_with("password="))
    }

    /// Reads `postgres://…`, `sqlite:PATH` or a path; a relative path starts at `base`.
    pub(crate) fn parse(text: &str, base: &Path) -> Result<Self, Invalid> {
        let limit = "it is postgres://user@host/database, or the path of an SQLite file such as sqlite:jobs.db";
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        // One letter too few, and a file of that name would be made where a server was meant.
        if text.starts_with("postgres") && text.contains('/') {
            return Err(Invalid::new("database", "postgres…", limit));
        }
        let path = match text.strip_prefix("sqlite:") {
            Some(path) => path.strip_prefix("//").unwrap_or(path),
            None if scheme(text).is_some() || text.contains("dbname=") || text.contains("host=") => {
                // Only the scheme is repeated: what follows may hold a password.
                let shown = scheme(text).map_or("…=…".to_owned(), |scheme| format!("{scheme}:…"));
                return Err(Invalid::new("database", shown, limit));
            }
            None => text,
        };
        if path == ":memory:" {
            return Err(Invalid::new(
                "database",
                text,
                "a store in memory would be gone with this command; name a file",
            ));
        }
        if path.is_empty() || path.ends_with(['/', '\\']) || path.contains('\0') {
            return Err(Invalid::new("database", text, limit));
        }
        Ok(Self::Sqlite(base.join(checked(path, "database")?)))
    }

    /// The embedded store's file in the directory `text`; a relative one starts at `base`.
    pub(crate) fn in_dir(text: &str, base: &Path) -> Result<Self, Invalid> {
        if text.is_empty() || text.contains('\0') {
            return Err(Invalid::new("data directory", text, "it is the path of a directory"));
        }
        Ok(Self::Sqlite(base.join(checked(text, "data directory")?).join(FILE_NAME)))
    }

    /// The embedded store's file in the user's own data directory.
    pub(crate) fn default_for_user(env: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, Failure> {
        let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let dir = if cfg!(windows) {
            absolute("LOCALAPPDATA").map(|dir| dir.join("tenure"))
        } else if cfg!(target_os = "macos") {
            absolute("HOME").map(|home| home.join("Library/Application Support/tenure"))
        } else {
            let shared = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
            shared.map(|dir| dir.join("tenure"))
        };
        let unknown = "there is no home directory to keep jobs in";
        let hint = "Say where: --data-dir DIR, TENURE_DATA_DIR, or --database URL.";
        let dir = dir.ok_or_else(|| Failure::usage("settings", unknown).hint(hint))?;
        Ok(Self::Sqlite(dir.join(FILE_NAME)))
    }
}

/// Shows a location without its password.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => f.write_str(&without_secrets(url)),
        }
    }
}

/// `postgres://host:port/database`: user, password and parameters are left out.
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", ""));
    let (at, mark) = (rest.rfind('@'), rest.find(['?', '#']));
    // A password may hold unescaped slashes and at-signs: the last at-sign ends it. Where one follows a question mark, it
    // may belong to either side, and nothing is shown.
    let place = match (at, mark) {
        (Some(at), Some(mark)) if at > mark => "…",
        (at, mark) => &rest[at.map_or(0, |at| at + 1)..mark.unwrap_or(rest.len())],
    };
    format!("{scheme}://{place}")
}

/// The scheme of a URL; a single letter is a Windows drive.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let word = scheme.len() > 1 && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    word.then_some(scheme)
}

/// Only a shell turns `~` into a home directory; a directory of that name is never meant.
fn checked<'a>(path: &'a str, field: &'static str) -> Result<&'a str, Invalid> {
    match path == "~" || path.starts_with("~/") {
        true => Err(Invalid::new(field, path, "write the home directory out: only a shell knows ~")),
        false => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_paths_are_told_apart() {
        let sqlite = |path: &str| Ok(Location::Sqlite(path.into()));
        for (text, location) in [
            ("jobs.db", sqlite("/base/jobs.db")),
            ("sqlite:jobs.db", sqlite("/base/jobs.db")),
            ("sqlite://jobs.db", sqlite("/base/jobs.db")),
            ("sqlite:///var/jobs.db", sqlite("/var/jobs.db")),
            ("sqlite:odd:name.db", sqlite("/base/odd:name.db")),
            ("postgres://localhost/app", Ok(Location::Postgres("postgres://localhost/app".into()))),
            ("postgresql://localhost/app", Ok(Location::Postgres("postgresql://localhost/app".into()))),
        ] {
            assert_eq!(Location::parse(text, Path::new("/base")), location, "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_without_their_secrets() {
        for bad in [
            "mysql://u:secret@h/db",
            "postgres:secret",
            "postgres//u:secret@h/db",
            "host=h password=secret",
            "",
            "dir/",
            ":memory:",
            "~/x",
        ] {
            let refused = Location::parse(bad, Path::new("")).unwrap_err();
            assert!(refused.field == "database" && !refused.to_string().contains("secret"), "{refused}");
        }
    }

    #[test]
    fn a_password_in_a_url_is_noticed() {
        for (url, has) in [
            ("postgres://ops:secret@db/app", true),
            ("postgres://db/app?sslmode=require&password=secret", true),
            ("postgres://ops@db:5432/app?sslmode=require", false),
            ("postgres://db:5432/app", false),
        ] {
            assert_eq!(Location::Postgres(url.into()).has_password(), has, "{url}");
        }
        assert!(!Location::Sqlite("a:b@c".into()).has_password());
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in [
            "postgres://ops:secret@db:5432/app?password=secret",
            "postgres://ops:secret/@secret@db:5432/app",
            "postgresql://ops:secret@db:5432/app#secret",
        ] {
            let shown = Location::Postgres(url.into()).to_string();
            assert!(shown.ends_with("://db:5432/app") && !shown.contains("secret"), "{shown}");
        }
        for url in
            ["postgres://ops:se?cret@db/app", "postgres://ops:x@se?cret@db/app", "postgres://db/app?password=se@cret"]
        {
            assert_eq!(Location::Postgres(url.into()).to_string(), "postgres://…", "nobody can tell where it ends");
        }
    }
}
