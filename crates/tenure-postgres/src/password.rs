//! The password of a URL that has none, from where every Postgres client looks: `PGPASSWORD`, then the password file
//! (`PGPASSFILE`, or `~/.pgpass`). So no password has to stand on a command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The environment: the process's own, or a test's.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Gives `config` the password of the environment, unless it has one. The refusal names what cannot be used, and no
/// password.
pub(crate) fn fill_in(config: &mut Config, env: Lookup<'_>) -> Result<(), String> {
    if config.get_password().is_some() {
        return Ok(());
    }
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    if let Some(password) = set("PGPASSWORD") {
        let text = password.into_string().map_err(|_| "PGPASSWORD is not UTF-8 text".to_owned())?;
        config.password(text);
        return Ok(());
    }
    let named = set("PGPASSFILE").map(PathBuf::from);
    let Some(path) = named.clone().or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".pgpass"))) else {
        return Ok(());
    };
    let text = match read(&path) {
        Ok(text) => text,
        // The file of the home directory may be missing or another program's.
        Err(_) if named.is_none() => return Ok(()),
        Err(why) => return Err(format!("PGPASSFILE: {}: {why}", path.display())),
    };
    if let Some(password) = find(&text, config) {
        config.password(password);
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o077 != 0 {
        return Err("other users can read or write it, so no client uses it: chmod 600".to_owned());
    }
    if !found.is_file() {
        return Err("it is no file".to_owned());
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

/// The password of the first line that fits: `host:port:database:user:password`, where `*` fits everything and `\` takes the
/// next character as it is.
fn find(text: &str, config: &Config) -> Option<String> {
    let hosts: Vec<String> = config.get_hosts().iter().map(name).collect();
    let ports: Vec<String> = match config.get_ports() {
        [] => vec!["5432".to_owned()],
        ports => ports.iter().map(ToString::to_string).collect(),
    };
    let user = config.get_user()?;
    let database = config.get_dbname().unwrap_or(user);
    text.lines().filter(|line| !line.starts_with('#')).map(fields).find_map(|fields| {
        let [host, port, of_database, of_user, password] = <[String; 5]>::try_from(fields).ok()?;
        let fits = |field: &str, value: &str| field == "*" || field == value;
        let matches = hosts.iter().any(|known| fits(&host, known))
            && ports.iter().any(|known| fits(&port, known))
            && fits(&of_database, database)
            && fits(&of_user, user);
        matches.then_some(password)
    })
}

/// A socket is `localhost` in a password file.
fn name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(_) => "localhost".to_owned(),
    }
}

/// The five fields of a line; a password may hold colons.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let is_last = fields.len() == 5;
        let Some(field) = fields.last_mut() else { break };
        match c {
            '\\' => field.extend(chars.next()),
            ':' if !is_last => fields.push(String::new()),
            c => field.push(c),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(url: &str, env: &[(&str, &str)]) -> Result<Option<String>, String> {
        let mut config: Config = url.parse().unwrap();
        fill_in(&mut config, &|name| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into()))?;
        Ok(config.get_password().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()))
    }

    #[test]
    fn the_url_comes_first_and_then_the_variable() {
        let env = [("PGPASSWORD", "of the variable")];
        assert_eq!(password("postgres://ops:own@db/app", &env), Ok(Some("own".into())));
        assert_eq!(password("postgres://ops@db/app", &env), Ok(Some("of the variable".into())));
        assert_eq!(password("postgres://ops@db/app", &[("PGPASSWORD", "")]), Ok(None));
    }

    #[test]
    fn the_first_line_that_fits_is_taken() {
        let text = "# comment\ndb:5432:app:other:no\ndb:6000:app:ops:port\n*:*:app:ops:a\\:b:c\\\\d\n*:*:*:*:any\n";
        for (url, expected) in [
            ("postgres://ops@db/app", "a:b:c\\d"),
            ("postgres://ops@db:6000/app", "port"),
            ("postgres://other@db/app", "no"),
            ("postgres://ops@db/else", "any"),
        ] {
            assert_eq!(find(text, &url.parse().unwrap()).as_deref(), Some(expected), "{url}");
        }
        assert_eq!(find("db:5432:app:ops", &"postgres://ops@db/app".parse().unwrap()), None, "too few fields");
    }

    #[cfg(unix)]
    #[test]
    fn a_password_file_that_others_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let dir = std::env::temp_dir().join(format!("tenure-pgpass-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join(".pgpass");
        std::fs::write(&path, "*:*:*:*:secret\n").unwrap();
        let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let (url, home, named) = ("postgres://ops@db/app", dir.to_str().unwrap(), path.to_str().unwrap());
        mode(0o600);
        assert_eq!(password(url, &[("HOME", home)]), Ok(Some("secret".into())));
        assert_eq!(password(url, &[("PGPASSFILE", named)]), Ok(Some("secret".into())));
        mode(0o644);
        assert_eq!(password(url, &[("HOME", home)]), Ok(None));
        let refused = password(url, &[("PGPASSFILE", named)]).unwrap_err();
        assert!(refused.contains("chmod 600") && !refused.contains("secret"), "{refused}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
