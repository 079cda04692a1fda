//! TLS with the meaning `sslmode` has everywhere else.
//!
//! `disable` is plain text; `prefer` and `require` encrypt and trust whom they meet; `verify-ca` and `verify-full` (or any
//! mode with an `sslrootcert`) check the certificate and the host name. Over a network use `verify-full`.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tenure_core::Invalid;
use tenure_store::StoreError;
use tokio_postgres_rustls::MakeRustlsConnect;

/// A URL the driver understands, and how to encrypt.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) config: tokio_postgres::Config,
    pub(crate) tls: MakeRustlsConnect,
}

/// Splits what the driver does not know (`sslrootcert`, the verifying modes) from a URL. A missing password comes from the
/// environment.
pub(crate) fn target(url: &str) -> Result<Target, StoreError> {
    let refuse = |limit: String| StoreError::Invalid(Invalid::new("database", without_password(url), limit));
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let mut verify = false;
    let mut root = None;
    let mut kept = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", "verify-ca" | "verify-full")) => {
                verify = true;
                kept.push("sslmode=require");
            }
            Some(("sslrootcert", path)) => root = Some(path.replace("%2F", "/").replace("%2f", "/")),
            _ => kept.push(pair),
        }
    }
    let url = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
    let mut config = url.parse::<tokio_postgres::Config>().map_err(|e| {
        refuse(format!("a database is postgres://user@host:port/name with sslmode and sslrootcert if wanted ({e})"))
    })?;
    crate::password::fill_in(&mut config, &|name| std::env::var_os(name)).map_err(refuse)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| refuse(e.to_string()))?;
    let client = if verify || root.is_some() {
        builder.with_root_certificates(roots(root.as_deref()).map_err(refuse)?).with_no_client_auth()
    } else {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider))).with_no_client_auth()
    };
    Ok(Target { config, tls: MakeRustlsConnect::new(client) })
}

fn roots(path: Option<&str>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match path {
        Some(path) => {
            let wrong =
                |e: &dyn std::fmt::Display| format!("sslrootcert `{path}` must be a PEM file of certificates ({e})");
            for certificate in CertificateDer::pem_file_iter(path).map_err(|e| wrong(&e))? {
                roots.add(certificate.map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        Err("no trusted certificate was found: name one with sslrootcert".to_owned())
    } else {
        Ok(roots)
    }
}

/// A URL that can be shown: the password is cut out.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "that has no ://".to_owned() };
    // A password may hold an @ or a ? of its own: everything up to the last @ belongs to the user.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (format!("{}@", user.split(':').next().unwrap_or_default()), rest),
        None => (String::new(), rest),
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let kept: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("password")).collect();
    let mark = if kept.is_empty() { "" } else { "?" };
    format!("{scheme}://{user}{place}{mark}{}", kept.join("&"))
}

/// Encrypts without asking who answers, as `prefer` and `require` do.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(without_password("postgres://ops:s3cret@db/app?x=1"), "postgres://ops@db/app?x=1");
        assert_eq!(without_password("postgres://db/app"), "postgres://db/app");
        for odd in ["postgres://ops:s3@cret@db/app", "postgres://ops:s3?cret@db/app"] {
            assert_eq!(without_password(odd), "postgres://ops@db/app");
        }
        assert_eq!(without_password("postgres://db/app?password=s3cret&x=1"), "postgres://db/app?x=1");
        assert!(!without_password("host=db password=s3cret").contains("s3cret"));
    }

    #[test]
    fn a_url_the_driver_cannot_read_is_refused_without_its_password() {
        let Err(refused) = target("postgres://ops:s3cret@db:port/app") else { panic!("it was taken") };
        assert!(refused.to_string().starts_with("database `postgres://ops@db:port/app` is refused"), "{refused}");
        assert!(!refused.to_string().contains("s3cret"));
    }

    #[test]
    fn verifying_needs_certificates_to_trust() {
        let Err(refused) = target("postgres://db/app?sslmode=verify-full&sslrootcert=no/such.pem") else {
            panic!("it was taken")
        };
        assert!(refused.to_string().contains("no/such.pem"), "{refused}");
    }
}
