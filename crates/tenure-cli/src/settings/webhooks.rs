//! Webhooks: whom they may reach, and what their secrets are sealed with.
//!
//! Where no key is set, an embedded store has one in a file beside it, made when it is first needed: whoever copies the
//! database alone has no secret of it.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tenure_core::Invalid;
use tenure_webhooks::{Cidr, Guard, GuardOptions, MasterKeys};

use super::file::SettingsFile;
use super::keys::boolean;
use super::{Location, Lookup, Setting, first};
use crate::failure::{Failure, exit};

/// Ports that may be called by default.
pub(super) const PORTS: [u16; 2] = [80, 443];

/// What is set about webhooks, checked.
#[derive(Debug)]
pub(crate) struct WebhookSettings {
    pub(crate) keys: Option<Setting<MasterKeys>>,
    /// Addresses that may be called although they are not public.
    pub(crate) allow: Option<Setting<Vec<Cidr>>>,
    /// Whether http:// may be called, too.
    pub(crate) http: Option<Setting<bool>>,
    /// Ports that may be called; none in the list: any.
    pub(crate) ports: Option<Setting<Vec<u16>>>,
}

impl WebhookSettings {
    pub(super) fn resolve(env: Lookup, file: Option<&SettingsFile>) -> Result<Self, Failure> {
        let find = |name, key| first(name, key, env, file);
        let keys = find("TENURE_WEBHOOK_KEYS", "webhook_keys")?;
        let allow = find("TENURE_WEBHOOK_ALLOW", "webhook_allow")?;
        let http = find("TENURE_WEBHOOK_HTTP", "webhook_http")?;
        let ports = find("TENURE_WEBHOOK_PORTS", "webhook_ports")?;
        Ok(Self {
            keys: keys.map(|said| said.check(|text| text.parse())).transpose()?,
            allow: allow.map(|said| said.check(|text| read_allow(&text))).transpose()?,
            http: http.map(|said| said.check(|text| boolean("webhook_http", &text))).transpose()?,
            ports: ports.map(|said| said.check(|text| read_ports("webhook_ports", &text))).transpose()?,
        })
    }

    /// Whom webhooks may reach.
    pub(crate) fn guard(&self) -> Guard {
        Guard::new(GuardOptions {
            https_only: !self.http.as_ref().is_some_and(|http| http.value),
            ports: self.ports.as_ref().map_or(PORTS.into(), |ports| ports.value.clone()),
            allow: self.allow.as_ref().map(|allow| allow.value.clone()).unwrap_or_default(),
        })
    }

    /// The same, and this machine itself by any port: for trying things out.
    pub(crate) fn guard_for_trying_out(&self) -> Result<Guard, Invalid> {
        let mut allow = self.allow.as_ref().map(|allow| allow.value.clone()).unwrap_or_default();
        allow.push("127.0.0.0/8".parse()?);
        allow.push("::1/128".parse()?);
        Ok(Guard::new(GuardOptions { https_only: false, ports: Vec::new(), allow }))
    }

    /// What secrets are sealed with: as set, or from the file beside an embedded store.
    pub(crate) fn keys(&self, location: &Location) -> Result<Option<MasterKeys>, Failure> {
        match (&self.keys, location) {
            (Some(keys), _) => Ok(Some(keys.value.clone())),
            (None, Location::Sqlite(path)) => key_beside(path).map(Some),
            (None, Location::Postgres(_)) => Ok(None),
        }
    }
}

/// A new key, as it is set.
pub(crate) fn new_key(id: &str) -> Result<String, Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{id}:{digits}"))
}

/// The key in the file beside a database, which is made if it is not there.
fn key_beside(database: &Path) -> Result<MasterKeys, Failure> {
    let mut name = database.as_os_str().to_owned();
    name.push(".webhook-key");
    let path = PathBuf::from(name);
    let unreadable = |error: &std::io::Error| {
        let message = format!("the webhook key {} cannot be read or made", path.display());
        Failure::new("settings", exit::USAGE, message).caused_by(error)
    };
    if !path.exists() {
        make_key(&path).map_err(|error| unreadable(&error))?;
    }
    let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&error))?;
    text.trim()
        .parse()
        .map_err(|invalid: Invalid| Failure::new("settings", exit::USAGE, format!("{}: {invalid}", path.display())))
}

/// Makes a key file whole or not at all: whoever is first gives it its name, and the others take that one.
fn make_key(path: &Path) -> std::io::Result<()> {
    static DRAFTS: AtomicU32 = AtomicU32::new(0);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.{}", std::process::id(), DRAFTS.fetch_add(1, Ordering::Relaxed)));
    let draft = PathBuf::from(name);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let key = new_key("embedded").map_err(|failure| std::io::Error::other(failure.message().to_owned()))?;
    let mut file = options.open(&draft)?;
    file.write_all(key.as_bytes())?;
    file.sync_all()?;
    let named = std::fs::hard_link(&draft, path);
    std::fs::remove_file(&draft)?;
    match named {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn read_allow(text: &str) -> Result<Vec<Cidr>, Invalid> {
    text.split(',').map(str::trim).filter(|range| !range.is_empty()).map(str::parse).collect()
}

pub(super) fn read_ports(name: &'static str, text: &str) -> Result<Vec<u16>, Invalid> {
    let limit = "it is any, or ports with commas between, such as 443,8443";
    if text == "any" {
        return Ok(Vec::new());
    }
    text.split(',').map(|port| port.trim().parse().map_err(|_| Invalid::new(name, text, limit))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server and a command line start together on a new store: both seal with one key, and nobody else reads it.
    #[test]
    fn whoever_is_first_makes_the_key_and_the_others_take_it() {
        let folder = std::env::temp_dir().join(format!("tenure-key-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let database = folder.join("tenure.db");
        let path = folder.join("tenure.db.webhook-key");
        let read = || {
            key_beside(&database).unwrap();
            std::fs::read_to_string(&path).unwrap()
        };
        let keys: Vec<String> = std::thread::scope(|scope| {
            let readers: Vec<_> = (0..8).map(|_| scope.spawn(read)).collect();
            readers.into_iter().map(|reader| reader.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| key.starts_with("embedded:") && key.len() == 73 && *key == keys[0]), "{keys:?}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no draft is left");
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
        std::fs::write(&path, "").unwrap();
        let broken = key_beside(&database).unwrap_err();
        assert!(broken.message().contains("webhook-key"), "it says which file: {}", broken.message());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
