//! A broker as workers and servers know it.

use async_trait::async_trait;
use tenure_core::JobId;
use tenure_store::Waker;

use crate::broker::Broker;

#[async_trait]
impl Waker for Broker {
    fn waiter(&self) -> Box<dyn Waker> {
        Box::new(self.clone())
    }

    async fn woken(&self) {
        Self::woken(self).await;
    }

    fn publish(&self, job: JobId) {
        Self::publish(self, job);
    }

    fn is_up(&self) -> bool {
        Self::is_up(self)
    }
}
