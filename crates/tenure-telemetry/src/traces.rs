//! Spans by OTLP over HTTP: recorded by tracing-opentelemetry, gathered in a bounded queue, sent by our own client.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider};
use tenure_core::Invalid;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::Options;
use crate::post::{Post, Silence};

/// Where traces go below an endpoint.
const PATH: &str = "/v1/traces";
/// Spans that wait to be sent; more are dropped.
const WAITING_MAX: usize = 4_096;
/// Spans of one request.
const BATCH: usize = 512;
/// Spans wait so long for others.
const EVERY: Duration = Duration::from_secs(2);

/// Records spans and sends them.
pub(crate) struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    pub(crate) fn start(endpoint: &str, options: &Options, post: Post) -> Result<Self, Invalid> {
        let refused = |why: &str| Invalid::new("otlp_endpoint", endpoint, why);
        let url = reqwest::Url::parse(endpoint).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| refused("it is a URL such as http://127.0.0.1:4318"))?;
        let whole = match url.path().trim_end_matches('/') {
            path if path.ends_with(PATH) => url.to_string(),
            path => {
                let mut whole = url.clone();
                whole.set_path(&format!("{path}{PATH}"));
                whole.to_string()
            }
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client { post, silence: Silence::of("the collector of traces") })
            .with_endpoint(whole)
            .with_protocol(Protocol::HttpBinary)
            .build()
            .map_err(|error| refused(&error.to_string()))?;
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(WAITING_MAX)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(EVERY)
            .build();
        let resource = Resource::builder_empty()
            .with_attributes([
                KeyValue::new("service.name", options.service_name.clone()),
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            ])
            .build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(config).build())
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(options.sample_ratio))))
            .with_resource(resource)
            .build();
        Ok(Self { provider })
    }

    /// Records our own spans, and nothing that is logged inside of them.
    pub(crate) fn layer<S>(&self) -> Box<dyn Layer<S> + Send + Sync>
    where
        S: tracing::Subscriber + for<'s> LookupSpan<'s> + Send + Sync,
    {
        let layer = tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("tenure"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_level(false)
            .with_tracked_inactivity(false);
        Box::new(layer.with_filter(filter_fn(|about| about.is_span() && about.name().starts_with("tenure."))))
    }

    pub(crate) fn close(self, wait: Duration) {
        // What could not be sent was told of when it could not.
        let _sent_or_dropped = self.provider.shutdown_with_timeout(wait);
    }
}

/// Our client, as the exporter knows it. The exporter's thread is in no runtime: the request runs on ours.
#[derive(Debug)]
struct Client {
    post: Post,
    silence: Silence,
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.post.client.clone();
        let sending = self.post.runtime().spawn(async move {
            let answer = client.execute(request.try_into()?).await?;
            let status = answer.status();
            Ok::<_, reqwest::Error>((status, answer.bytes().await?))
        });
        let sent = sending.await?;
        match &sent {
            Ok((status, _)) if status.is_success() => self.silence.over(),
            Ok((status, _)) => self.silence.failed(status.as_str()),
            // Without the URL: it may hold a key.
            Err(error) => self.silence.failed(&without_url(error)),
        }
        let (status, body) = sent?;
        Ok(Response::builder().status(status).body(body)?)
    }
}

fn without_url(error: &reqwest::Error) -> String {
    let kind = match error {
        error if error.is_timeout() => "it took too long",
        error if error.is_connect() => "there is no connection",
        _ => "the request failed",
    };
    kind.to_owned()
}
