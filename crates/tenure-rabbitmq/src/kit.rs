//! The runtime that the driver runs on: tokio's, with our stream, and without the driver's own lines in the log.
//!
//! The driver tells of a lost connection three or four times, as errors, at every try. What it knows comes back to us as
//! an error too, and `keeper` tells it once. So whatever runs here, tasks and the driver's thread, has no subscriber.

use std::future::Future;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use async_rs::Tokio;
use async_rs::traits::{Executor, Reactor, RuntimeKit};
use async_rs::util::{DummyIO, Task};
use futures_core::Stream as FutureStream;
use tracing::Dispatch;
use tracing::instrument::WithSubscriber;

use crate::stream::Stream;

#[derive(Debug, Clone)]
pub(crate) struct Kit(Tokio);

impl Kit {
    /// On the runtime we are in.
    pub(crate) fn current() -> Self {
        Self(Tokio::current())
    }
}

impl RuntimeKit for Kit {}

impl Executor for Kit {
    type Task<T: Send + 'static> = <Tokio as Executor>::Task<T>;

    /// Only the driver's own thread blocks, and it begins with this: from here on it is quiet.
    fn block_on<T, F: Future<Output = T>>(&self, f: F) -> T {
        std::mem::forget(tracing::dispatcher::set_default(&Dispatch::none()));
        self.0.block_on(f)
    }

    fn spawn<T: Send + 'static, F: Future<Output = T> + Send + 'static>(&self, f: F) -> Task<Self::Task<T>> {
        self.0.spawn(f.with_subscriber(Dispatch::none()))
    }

    fn spawn_blocking<T: Send + 'static, F: FnOnce() -> T + Send + 'static>(&self, f: F) -> Task<Self::Task<T>> {
        self.0.spawn_blocking(f)
    }
}

impl Reactor for Kit {
    type TcpStream = Stream;
    type Sleep = <Tokio as Reactor>::Sleep;

    fn register<H: Read + Write + Send + 'static>(
        &self,
        _: H,
    ) -> io::Result<impl futures_io::AsyncRead + futures_io::AsyncWrite + Send + Unpin + 'static> {
        Err::<DummyIO, _>(io::ErrorKind::Unsupported.into())
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        self.0.sleep(duration)
    }

    fn interval(&self, duration: Duration) -> impl FutureStream<Item = Instant> + Send + 'static {
        self.0.interval(duration)
    }

    /// The driver is handed a stream that is open.
    fn tcp_connect_addr(&self, _: SocketAddr) -> impl Future<Output = io::Result<Stream>> + Send + 'static {
        std::future::ready(Err(io::ErrorKind::Unsupported.into()))
    }
}
