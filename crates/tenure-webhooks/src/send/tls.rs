//! TLS: whom we trust, and the handshake.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tenure_core::Invalid;
use tokio::net::TcpStream;
use tokio::time::timeout_at;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Host;

use super::error::{SendError, Stage};
use super::{Call, exchange};

/// Whose certificates are trusted.
#[derive(Debug, Clone, Default)]
pub enum Roots {
    /// Those that the operating system trusts, read once.
    #[default]
    System,
    /// These and no others; with none every `https://` fails.
    Only(Vec<CertificateDer<'static>>),
}

/// None where nobody is trusted: `http://` still works then, for development on a machine without certificates.
pub(super) fn connector(roots: &Roots) -> Result<Option<TlsConnector>, Invalid> {
    let mut trusted = RootCertStore::empty();
    match roots {
        Roots::System => {
            trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Roots::Only(certificates) => {
            for certificate in certificates {
                trusted
                    .add(certificate.clone())
                    .map_err(|error| Invalid::new("roots", "given", format!("each is a certificate ({error})")))?;
            }
        }
    }
    if trusted.is_empty() {
        return Ok(None);
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Invalid::new("roots", "given", error.to_string()))?
        .with_root_certificates(trusted)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Two endpoints on one host belong to two tenants: neither learns that the other was called.
    config.resumption = Resumption::disabled();
    Ok(Some(TlsConnector::from(Arc::new(config))))
}

impl Call<'_> {
    /// Shakes hands with whoever has a certificate for the host of the URL.
    pub(super) async fn encrypt(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, SendError> {
        let failed = |why: &dyn ToString| self.unreachable(Stage::Tls, why);
        let none = "no certificate is trusted: install those of the system (ca-certificates), or name roots";
        let connector = self.inner.tls.as_ref().ok_or_else(|| failed(&none))?;
        let name = match self.target.host() {
            Host::Domain(name) => ServerName::try_from(name.clone()).map_err(|error| failed(&error))?,
            Host::Ipv4(address) => ServerName::from(std::net::IpAddr::from(*address)),
            Host::Ipv6(address) => ServerName::from(std::net::IpAddr::from(*address)),
        };
        match timeout_at(self.deadline, connector.connect(name, stream)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(failed(&exchange::chain(&error))),
            Err(_) => Err(self.timed_out(Stage::Tls, None)),
        }
    }
}
