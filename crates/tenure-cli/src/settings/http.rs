//! Hosts that jobs of kind `http` may call. Without a list the kind is off.

use clap::Args;
use tenure_core::Invalid;
use tenure_webhooks::{Guard, GuardOptions, HostRule};

use super::file::SettingsFile;
use super::webhooks::{PORTS, read_ports};
use super::{Lookup, Origin, Setting, first};
use crate::failure::Failure;

/// Flags of the commands that run jobs of kind `http`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct HttpFlags {
    /// Hosts that jobs of kind http may call, with commas [default: none, the kind is off]
    #[arg(long, value_name = "HOSTS")]
    http_allow: Option<String>,
    /// Ports that jobs of kind http may call, with commas, or any [default: 80,443]
    #[arg(long, value_name = "PORTS")]
    http_ports: Option<String>,
}

/// What jobs of kind `http` may call, checked.
#[derive(Debug)]
pub(crate) struct HttpSettings {
    /// Hosts; the kind is off where none is listed.
    pub(crate) allow: Option<Setting<Vec<HostRule>>>,
    /// Ports; none in the list: any.
    pub(crate) ports: Option<Setting<Vec<u16>>>,
}

impl HttpSettings {
    pub(super) fn resolve(flags: &HttpFlags, env: Lookup, file: Option<&SettingsFile>) -> Result<Self, Failure> {
        let find = |flag: &Option<String>, option, name, key| match flag.clone() {
            Some(value) => Ok(Some(Setting { value, origin: Origin::Flag(option) })),
            None => first(name, key, env, file),
        };
        let allow = find(&flags.http_allow, "--http-allow", "TENURE_HTTP_ALLOW", "http_allow")?;
        let ports = find(&flags.http_ports, "--http-ports", "TENURE_HTTP_PORTS", "http_ports")?;
        Ok(Self {
            allow: allow.map(|said| said.check(|text| read_hosts(&text))).transpose()?,
            ports: ports.map(|said| said.check(|text| read_ports("http_ports", &text))).transpose()?,
        })
    }

    /// The guard of these jobs; none where the kind is off.
    pub(crate) fn guard(&self) -> Option<Guard> {
        let hosts = self.allow.as_ref()?.value.clone();
        let ports = self.ports.as_ref().map_or(PORTS.into(), |ports| ports.value.clone());
        // An operator who lists a host decides about its scheme, too.
        Some(Guard::new(GuardOptions { https_only: false, ports, allow: Vec::new() }).only(hosts))
    }
}

fn read_hosts(text: &str) -> Result<Vec<HostRule>, Invalid> {
    let hosts: Vec<HostRule> = text
        .split(',')
        .map(str::trim)
        .filter(|host| !host.is_empty())
        .map(str::parse)
        .collect::<Result<_, Invalid>>()?;
    match hosts.is_empty() {
        true => Err(Invalid::new("http_allow", text, "it lists hosts, such as api.example.com,10.0.0.0/8, or any")),
        false => Ok(hosts),
    }
}
