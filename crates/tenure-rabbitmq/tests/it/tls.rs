//! amqps, through a proxy that speaks TLS before the broker does not.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A root, and a proxy whose certificate it has signed.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    pub(crate) ca: PathBuf,
}

impl Proxy {
    /// In front of this port of the loopback.
    pub(crate) async fn start(broker: u16) -> Self {
        let mut root = CertificateParams::new(Vec::new()).unwrap();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(root, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &root).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![leaf.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut secure) = acceptor.accept(stream).await else { return };
                    let mut plain = TcpStream::connect(("127.0.0.1", broker)).await.unwrap();
                    let _gone = copy_bidirectional(&mut secure, &mut plain).await;
                });
            }
        });
        let ca = std::env::temp_dir().join(format!("tenure-rq-ca-{}-{port}.pem", std::process::id()));
        std::fs::write(&ca, root.pem()).unwrap();
        Self { port, ca }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.ca);
    }
}
