//! The OpenAPI document: what the handlers say of themselves, and what is the same for all of them.

use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{
    Components, Content, Info, License, OpenApi, OpenApiBuilder, Ref, RefOr, Response, ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use crate::caller::WORKER_HEADER;
use crate::problem::{self, CODES, Code, ProblemBody};

/// The document before the first handler.
pub(super) fn about() -> OpenApi {
    let mut info = Info::new("Tenure", env!("CARGO_PKG_VERSION"));
    let about = "Durable jobs on Postgres or on one embedded file: enqueue, see, operate, and work, in any language.";
    info.description = Some(about.into());
    info.license = Some(License::new("MIT OR Apache-2.0"));
    let mut components = Components::new();
    let mut key = Http::new(HttpAuthScheme::Bearer);
    key.description = Some("An API key: `tenure keys create`.".into());
    components.add_security_scheme("key", SecurityScheme::Http(key));
    let token = ApiKeyValue::with_description(WORKER_HEADER, "The token that a worker was given when it registered.");
    components.add_security_scheme("worker", SecurityScheme::ApiKey(ApiKey::Header(token)));
    components.schemas.insert(ProblemBody::name().into_owned(), ProblemBody::schema());
    for code in CODES {
        components.responses.insert(code.word.to_owned(), RefOr::T(response(*code)));
    }
    OpenApiBuilder::new().info(info).components(Some(components)).build()
}

/// The document after the last one, as text: every operation with the errors that it may answer.
pub(super) fn complete(mut document: OpenApi) -> String {
    for (path, item) in &mut document.paths.paths {
        let (reads, writes) = ([&mut item.get, &mut item.delete], [&mut item.post, &mut item.put, &mut item.patch]);
        for operation in reads.into_iter().filter_map(Option::as_mut) {
            add(operation, path, &[problem::MALFORMED, problem::CONFLICT, problem::INVALID, problem::UNAVAILABLE]);
        }
        for operation in writes.into_iter().filter_map(Option::as_mut) {
            let of_bodies = [
                problem::MALFORMED,
                problem::TIMEOUT,
                problem::CONFLICT,
                problem::TOO_LARGE,
                problem::UNSUPPORTED_MEDIA_TYPE,
                problem::INVALID,
                problem::FULL,
                problem::UNAVAILABLE,
            ];
            add(operation, path, &of_bodies);
        }
    }
    document.to_pretty_json().unwrap_or_default() + "\n"
}

fn add(operation: &mut Operation, path: &str, codes: &[Code]) {
    let summary = operation.summary.clone().unwrap_or_default();
    for said in operation.responses.responses.values_mut() {
        if let RefOr::T(said) = said
            && said.description.is_empty()
        {
            said.description.clone_from(&summary);
        }
    }
    // Nobody is kept out of the pages that are open to all; they do not ask the store either.
    let is_guarded = operation.security.iter().flatten().any(|scheme| *scheme != Default::default());
    let mut all: Vec<Code> = Vec::new();
    if is_guarded {
        all.extend([problem::UNAUTHORIZED, problem::FORBIDDEN]);
        all.extend(codes);
    }
    if is_guarded || path.contains('{') {
        all.push(problem::NOT_FOUND);
    }
    for code in all {
        let name = code.word;
        let shared = RefOr::Ref(Ref::new(format!("#/components/responses/{name}")));
        operation.responses.responses.entry(code.status.to_string()).or_insert(shared);
    }
}

fn response(code: Code) -> Response {
    let schema = RefOr::Ref(Ref::from_schema_name(ProblemBody::name()));
    let content = Content::new(Some(schema));
    ResponseBuilder::new().description(code.title).content("application/problem+json", content).build()
}
