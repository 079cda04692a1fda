//! The broker that the settings name, in a binary that knows brokers (the feature `rabbitmq`).

use std::sync::Arc;

use tenure_store::Waker;

use crate::failure::Failure;
use crate::settings::RabbitSettings;

#[cfg(feature = "rabbitmq")]
pub(crate) use known::start;
#[cfg(not(feature = "rabbitmq"))]
pub(crate) use unknown::start;

/// A broker, whether it is there or not.
pub(crate) struct Broker {
    #[cfg(feature = "rabbitmq")]
    handle: tenure_rabbitmq::Broker,
    #[cfg(not(feature = "rabbitmq"))]
    never: std::convert::Infallible,
}

#[cfg(feature = "rabbitmq")]
mod known {
    use tenure_rabbitmq::Options;

    use super::{Arc, Broker, Failure, RabbitSettings, Waker};

    /// Starts to connect if the settings name a broker, inside a runtime. That it is away is no failure.
    pub(crate) fn start(settings: &RabbitSettings) -> Result<Option<Broker>, Failure> {
        let Some(url) = &settings.url else { return Ok(None) };
        let options = Options {
            exchange: settings.exchange.value.clone(),
            routing_key: settings.routing_key.value.clone(),
            queue: settings.queue.as_ref().map(|queue| queue.value.clone()),
            publish: settings.publish.value,
            ca: settings.ca.as_ref().map(|ca| ca.value.clone()),
            ..Options::new(url.value.0.clone())
        };
        let handle = tenure_rabbitmq::Broker::start(options).map_err(|invalid| {
            let origin = settings.origin(invalid.field).unwrap_or(&url.origin);
            Failure::usage("settings", format!("{origin}: {invalid}"))
        })?;
        Ok(Some(Broker { handle }))
    }

    impl Broker {
        /// As workers and servers know it.
        pub(crate) fn waker(&self) -> Arc<dyn Waker> {
            Arc::new(self.handle.clone())
        }

        /// Publishes what still waits and says goodbye, within seconds.
        pub(crate) async fn close(self) {
            self.handle.close().await;
        }
    }
}

/// What a binary says that does not know brokers.
#[cfg(any(test, not(feature = "rabbitmq")))]
fn refuse(origin: &crate::settings::Origin) -> Failure {
    let why = format!("{origin}: this binary was built without RabbitMQ");
    Failure::usage("settings", why).hint("Build it with the feature: cargo build --features rabbitmq")
}

#[cfg(not(feature = "rabbitmq"))]
mod unknown {
    use super::{Arc, Broker, Failure, RabbitSettings, Waker};

    /// Refuses settings that name a broker: whoever named one counts on it.
    pub(crate) fn start(settings: &RabbitSettings) -> Result<Option<Broker>, Failure> {
        settings.url.as_ref().map_or(Ok(None), |url| Err(super::refuse(&url.origin)))
    }

    impl Broker {
        pub(crate) fn waker(&self) -> Arc<dyn Waker> {
            match self.never {}
        }

        pub(crate) async fn close(self) {
            match self.never {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_without_brokers_names_who_named_one() {
        let refused = refuse(&crate::settings::Origin::Variable("TENURE_RABBITMQ_URL"));
        assert_eq!(refused.message(), "TENURE_RABBITMQ_URL: this binary was built without RabbitMQ");
        assert_eq!(refused.exit(), crate::failure::exit::USAGE);
    }
}
