//! The socket below the driver: plain or TLS, and ours to cut.
//!
//! The driver reads and writes it in a thread of its own, which waits for as long as nothing comes. A connection that we
//! gave up is therefore cut below it: the thread sees the end and goes.

use std::io;
use std::net::Shutdown;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::options::Target;

/// What the driver talks through.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Ends the connection when it is dropped, whoever else holds it.
pub(crate) struct Cut(std::net::TcpStream);

impl Drop for Cut {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.0.shutdown(Shutdown::Both);
    }
}

/// Connects, and shakes hands where TLS is wanted. The caller bounds the time.
pub(crate) async fn connect(target: &Target) -> io::Result<(Stream, Cut)> {
    let to = (target.uri.authority.host.as_str(), target.uri.authority.port);
    let plain = TcpStream::connect(to).await?;
    plain.set_nodelay(true)?;
    let plain = plain.into_std()?;
    let cut = Cut(plain.try_clone()?);
    let plain = TcpStream::from_std(plain)?;
    let stream = match &target.tls {
        None => Stream::Plain(plain),
        Some(tls) => {
            let connector = TlsConnector::from(Arc::clone(&tls.config));
            Stream::Tls(Box::new(connector.connect(tls.name.clone(), plain).await?))
        }
    };
    Ok((stream, cut))
}

/// Trusts the certificates of this file, or those that the system trusts.
pub(crate) fn client_config(ca: Option<&Path>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let wrong = |error: &dyn std::fmt::Display| format!("it must be a PEM file of certificates ({error})");
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
                roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err("no certificate was found there".to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(builder.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth())
}

impl futures_io::AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(bytes);
        ready!(match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
        })?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl futures_io::AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
