//! A file that holds the URL of a database, as secret stores and container platforms hand it over.

use std::path::Path;

use super::{Location, Origin, Setting};
use crate::failure::Failure;

/// A URL is one line; a larger file is another one.
const BYTES_MAX: u64 = 64 << 10;

/// Reads the URL. What the file holds is never repeated: it may be a password.
pub(super) fn read(path: &Path, origin: Origin, warnings: &mut Vec<String>) -> Result<Setting<Location>, Failure> {
    let refuse = |why: &str| Failure::usage("settings", format!("{origin}: the file {} {why}", path.display()));
    let unreadable = |error: std::io::Error| refuse("cannot be read").caused_by(&error);
    let found = std::fs::metadata(path).map_err(unreadable)?;
    if found.len() > BYTES_MAX {
        return Err(refuse("is too large for a URL"));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let text = text.trim();
    let is_url = ["postgres://", "postgresql://", "sqlite:"].iter().any(|scheme| text.starts_with(scheme));
    if !is_url || text.contains(char::is_control) {
        return Err(refuse("holds no URL: one line such as postgres://user:password@host/database, or sqlite:PATH"));
    }
    let location =
        Location::parse(text, Path::new("")).map_err(|invalid| refuse(&format!("is refused: {}", invalid.limit)))?;
    #[cfg(unix)]
    if location.has_password() && std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o077 != 0 {
        warnings.push(format!(
            "{} holds a password and other users of this machine can read it: chmod 600",
            path.display()
        ));
    }
    Ok(Setting { value: location, origin })
}
