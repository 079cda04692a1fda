//! One trace, from the caller of the API to the receiver of a webhook, as a collector gets it from the real binary.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::json;

use crate::place::Place;
use crate::receiver::Receiver;
use crate::server::Served;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
/// In the payload, which the message of the failure repeats.
const CANARY: &str = "c4n4ry-7f3a";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(span: &Span, name: &str) -> Option<String> {
    let value = span.attributes.iter().find(|attribute| attribute.key == name)?.value.clone()?.value?;
    Some(match value {
        Any::StringValue(text) => text,
        Any::IntValue(number) => number.to_string(),
        other => panic!("{name} is {other:?}"),
    })
}

#[test]
fn a_job_is_one_trace_from_its_caller_to_its_webhook() {
    let (collector, hook) = (Receiver::start(), Receiver::start());
    let place = Place::new()
        .with_env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", collector.address))
        .with_env("OTEL_SERVICE_NAME", "shop");
    let served = Served::start(&place, &["dev"]);
    let endpoint = json!({ "url": format!("http://{}/hook", hook.address), "events": ["job.succeeded"] });
    assert_eq!(served.call("POST", "/v1/webhooks", "", &endpoint.to_string()).0, 201);
    let job = json!({ "kind": "fail", "payload": { "message": CANARY, "until": 2 }, "backoff": "none" });
    let traceparent = format!("00-{TRACE}-{CALLER}-01");
    let headers = [("traceparent", traceparent.as_str())];
    let (status, stored) = served.call_with("POST", "/v1/jobs", &headers, &job.to_string());
    assert_eq!(status, 201, "{stored}");
    let delivered = hook.next();
    let ran = served.process.terminate();
    assert_eq!(ran.code, 0, "{}", ran.err);

    let mut spans = Vec::new();
    for got in collector.all() {
        assert_eq!((got.path.as_str(), got.header("content-type")), ("/v1/traces", Some("application/x-protobuf")));
        let request = ExportTraceServiceRequest::decode(got.body.as_slice()).unwrap();
        assert!(!format!("{request:?}").contains(CANARY), "payloads are in no trace");
        for resource in request.resource_spans {
            assert!(format!("{:?}", resource.resource).contains("shop"), "{:?}", resource.resource);
            spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    }
    let named = |name: &str| spans.iter().filter(|span| span.name == name).cloned().collect::<Vec<Span>>();
    let enqueued = named("tenure.enqueue");
    assert_eq!(enqueued.len(), 1, "{spans:?}");
    assert_eq!((hex(&enqueued[0].trace_id), hex(&enqueued[0].parent_span_id)), (TRACE.into(), CALLER.into()));
    let attempts = named("tenure.attempt");
    assert_eq!(attempts.len(), 3, "{attempts:?}");
    for attempt in &attempts {
        assert_eq!(hex(&attempt.trace_id), TRACE);
        assert_eq!(attempt.parent_span_id, enqueued[0].span_id);
    }
    let of = |kind: &str, no: &str| {
        let is = |span: &&Span| {
            text(span, "job.kind").as_deref() == Some(kind) && text(span, "attempt").as_deref() == Some(no)
        };
        attempts.iter().find(is).unwrap_or_else(|| panic!("no {kind} {no} in {attempts:?}"))
    };
    let (first, second, delivery) = (of("fail", "1"), of("fail", "2"), of("tenure.webhook", "1"));
    let outcome = |span: &Span| (text(span, "outcome").unwrap(), span.status.as_ref().map_or(0, |status| status.code));
    assert_eq!((outcome(first), text(first, "error.type").as_deref()), (("retry".into(), 2), Some("transient")));
    assert_eq!((outcome(second).0.as_str(), text(second, "error.type")), ("succeeded", None));
    assert_eq!(text(first, "job.id").as_deref(), stored["id"].as_str());
    assert_eq!(text(first, "queue").as_deref(), Some("default"));
    assert!(text(first, "lease.no") < text(second, "lease.no"));
    // The receiver is told which step called it.
    let heard = delivered.header("traceparent").unwrap();
    assert_eq!(heard, format!("00-{TRACE}-{}-01", hex(&delivery.span_id)));
}

#[test]
fn a_trace_that_is_none_is_ignored_and_a_collector_that_is_away_is_told_of_once() {
    let place = Place::new().with_env("TENURE_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let served = Served::start(&place, &["dev"]);
    for (said, kept) in [("00-not-a-trace", false), (&*format!("00-{TRACE}-{CALLER}-01"), true)] {
        let (status, stored) =
            served.call_with("POST", "/v1/jobs", &[("traceparent", said)], r#"{"kind":"noop","delay":"1h"}"#);
        assert_eq!(status, 201);
        let trace = place.json(&["jobs", "show", stored["id"].as_str().unwrap()])["trace"].clone();
        assert_eq!(trace.as_str().is_some_and(|trace| trace.contains(TRACE)), kept, "{trace}");
    }
    let ran = served.process.terminate();
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.err.matches("the collector of traces cannot be reached").count(), 1, "{}", ran.err);
    let refused = Place::new().with_env("TENURE_OTLP_ENDPOINT", "c4n4ry").run(&["dev"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("TENURE_OTLP_ENDPOINT") && !refused.err.contains("c4n4ry"), "{}", refused.err);
}
