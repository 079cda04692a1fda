//! TLS: whose certificate is believed.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tenure_webhooks::send::Stage;
use tenure_webhooks::{Guard, GuardOptions, Roots, SendError, SendOptions, Sender, Sent};
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsAcceptor;

use crate::receiver::{AMPLE, Receiver, Told, call, read_request};

const FINE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine";

/// A root that signs certificates for tests.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn root(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    /// A receiver whose certificate is for this name, and which answers this and closes, politely or not.
    async fn receiver(&self, name: &str, expired: bool, answer: &'static [u8], polite: bool) -> Receiver {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if expired {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap().der().clone();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Receiver::start(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let mut stream = acceptor.accept(stream).await?;
                read_request(&mut stream).await?;
                stream.write_all(answer).await?;
                stream.flush().await?;
                if polite { stream.shutdown().await } else { stream.get_mut().0.shutdown().await }
            }
        })
        .await
    }
}

async fn called(receiver: &Receiver, host: &str, roots: Roots) -> Result<Sent, SendError> {
    let port = receiver.address.port();
    let allow = vec!["127.0.0.0/8".parse().unwrap()];
    let guard = Guard::new(GuardOptions { ports: vec![port], allow, ..GuardOptions::default() });
    let options = SendOptions { timeout: AMPLE, roots, ..SendOptions::default() };
    let sender = Sender::new(guard, Told::loopback(), options).unwrap();
    call(&sender, &format!("https://{host}:{port}/s3cret")).await
}

/// Why the handshake failed.
fn distrust(result: Result<Sent, SendError>) -> String {
    match result {
        Err(SendError::Unreachable { stage: Stage::Tls, why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_certificate_of_a_trusted_root_is_believed() {
    let authority = Authority::new();
    let roots = || Roots::Only(vec![authority.root()]);
    let receiver = authority.receiver("hook.example", false, FINE, true).await;
    let sent = called(&receiver, "hook.example", roots()).await.unwrap();
    assert_eq!((sent.status, sent.body_start.as_str()), (200, "fine"));
    let receiver = authority.receiver("127.0.0.1", false, FINE, true).await;
    assert_eq!(called(&receiver, "127.0.0.1", roots()).await.unwrap().status, 200, "an address can have one too");
}

#[tokio::test]
async fn a_certificate_of_another_root_is_not_believed() {
    let authority = Authority::new();
    let receiver = authority.receiver("hook.example", false, FINE, true).await;
    let other = Roots::Only(vec![Authority::new().root()]);
    let why = distrust(called(&receiver, "hook.example", other).await);
    assert!(why.contains("invalid peer certificate"), "{why}");
    let why = distrust(called(&receiver, "hook.example", Roots::System).await);
    assert!(why.contains("certificate"), "{why}");
    let why = distrust(called(&receiver, "hook.example", Roots::Only(Vec::new())).await);
    assert!(why.starts_with("no certificate is trusted"), "{why}");
}

#[tokio::test]
async fn a_certificate_of_another_name_or_time_is_not_believed() {
    let authority = Authority::new();
    let roots = || Roots::Only(vec![authority.root()]);
    let receiver = authority.receiver("hook.example", false, FINE, true).await;
    for host in ["other.example", "a.hook.example", "127.0.0.1"] {
        let why = distrust(called(&receiver, host, roots()).await);
        assert!(why.contains("not valid for name"), "{host}: {why}");
    }
    let receiver = authority.receiver("hook.example", true, FINE, true).await;
    let why = distrust(called(&receiver, "hook.example", roots()).await);
    assert!(why.contains("expired"), "{why}");
}

#[tokio::test]
async fn who_speaks_no_tls_is_unreachable() {
    let hangs_up = Receiver::start(|_| async { Ok(()) }).await;
    let speaks_plain = Receiver::start(|mut stream| async move {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\nspeak http\r\n").await?;
        stream.shutdown().await
    })
    .await;
    for receiver in [hangs_up, speaks_plain] {
        distrust(called(&receiver, "hook.example", Roots::Only(vec![Authority::new().root()])).await);
    }
}

/// Many receivers end TLS by closing the connection. The answer's own framing tells whether anything is missing.
#[tokio::test]
async fn a_rude_end_of_tls_is_an_end_and_cuts_nothing_off_unseen() {
    let authority = Authority::new();
    let roots = || Roots::Only(vec![authority.root()]);
    let receiver = authority.receiver("hook.example", false, b"HTTP/1.0 200 OK\r\n\r\nfine", false).await;
    assert_eq!(called(&receiver, "hook.example", roots()).await.unwrap().body_start, "fine");
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nfine";
    let receiver = authority.receiver("hook.example", false, cut, false).await;
    let failed = called(&receiver, "hook.example", roots()).await.unwrap_err();
    assert!(matches!(failed, SendError::Unreadable { status: Some(200), .. }), "{failed:?}");
}
