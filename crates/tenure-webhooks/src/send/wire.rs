//! [`Metered`]: a connection that counts what is read, and ends it when it is too much.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Counts reads; writes pass.
pub(super) struct Metered<S> {
    stream: S,
    read: Arc<AtomicUsize>,
    max: usize,
}

/// Inside of the I/O error of a read: the receiver sent more than was allowed.
#[derive(Debug, thiserror::Error)]
#[error("it goes on after {max} bytes")]
pub(super) struct TooMuch {
    max: usize,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S, max: usize) -> Self {
        Self { stream, read: Arc::default(), max }
    }

    /// How much was read, to look at later.
    pub(super) fn count(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.read)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        match ready!(Pin::new(&mut this.stream).poll_read(context, buffer)) {
            Ok(()) => {}
            // TLS that ends without saying so. Whether the answer was whole is seen by its length or its last chunk; one
            // that has neither ends here, and many receivers do just that.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(())),
            Err(error) => return Poll::Ready(Err(error)),
        }
        let new = buffer.filled().len() - before;
        if this.read.fetch_add(new, Ordering::Relaxed) + new > this.max {
            return Poll::Ready(Err(io::Error::other(TooMuch { max: this.max })));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
