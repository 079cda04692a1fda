//! Gates and their rules: shared resources belong to all tenants, so they are the operators'.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Deserializer};
use tenure_core::gate::{Breaker, GateRule, Part, Pattern, Rate, RulePatch};
use tenure_core::name::GateName;
use tenure_core::{Invalid, Scope};
use tenure_store::gate::{GateAct, GateFilter, OperateGate, PatchRule, SetRule};
use tenure_store::operate::BATCH_MAX;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::parse;
use super::ok;
use crate::app::App;
use crate::body::Json;
use crate::caller::Caller;
use crate::cursor::{self, Page};
use crate::problem::Problem;
use crate::query::{Query, Segments};
use crate::right::{Operate, Operators};
use crate::wire::gate::{GateLine, RuleLine};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_gates))
        .routes(routes!(show_gate))
        .routes(routes!(operate_gate))
        .routes(routes!(list_rules))
        .routes(routes!(set_rule, change_rule, remove_rule))
}

/// Which gates to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListGates {
    /// Only these: a name, or a beginning such as source:*
    pattern: Option<String>,
    /// 1 to 200, 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before
    cursor: Option<String>,
}

/// List gates and what they let through now
#[utoipa::path(get, path = "/v1/gates", tag = "gates", params(ListGates), security(("key" = ["read"])),
    responses((status = 200, body = Page<GateLine>)))]
async fn list_gates(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<ListGates>,
) -> Result<Response, Problem> {
    caller.need_operator(Scope::Read)?;
    let limit = cursor::limit(asked.limit)?;
    let after = cursor::read::<GateName>("gates", asked.cursor.as_deref())?;
    let filter = GateFilter { pattern: parse::<Pattern>(asked.pattern.as_deref())?, after, limit: limit + 1 };
    let gates = app.store.list_gates(&filter).await?;
    ok(&Page::cut("gates", gates, limit, |gate| gate.name.to_string(), |gate| GateLine::from(gate)))
}

/// One gate
#[utoipa::path(get, path = "/v1/gates/{gate}", tag = "gates", params(("gate" = String, Path)), security(("key" = ["read"])),
    responses((status = 200, body = GateLine)))]
async fn show_gate(State(app): State<App>, caller: Caller, path: Segments) -> Result<Response, Problem> {
    caller.need_operator(Scope::Read)?;
    ok(&GateLine::from(&app.store.show_gate(&path.get("gate")?).await?))
}

/// For how long, and why.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GateBody {
    /// For how long it is paused or tripped; until it is taken back where nothing is said
    #[schema(minimum = 1, maximum = 31536000000_u64)]
    for_ms: Option<u64>,
    /// Why, in a person's words: it goes into the journal
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// Pause, resume, trip or reset a gate
#[utoipa::path(post, path = "/v1/gates/{gate}/{act}", tag = "gates", request_body = GateBody, security(("key" = ["operate"])),
    params(("gate" = String, Path), ("act" = String, Path, description = "pause, resume, trip or reset", pattern = "^(pause|resume|trip|reset)$")),
    responses((status = 200, body = GateLine)))]
async fn operate_gate(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operators<Operate>, GateBody>,
) -> Result<Response, Problem> {
    let (gate, act): (GateName, String) = (path.get("gate")?, path.get("act")?);
    let time = body.for_ms.map(Duration::from_millis);
    let act = match act.as_str() {
        "pause" => GateAct::Pause(time),
        "resume" => GateAct::Resume,
        "trip" => GateAct::Trip(time),
        "reset" => GateAct::Reset,
        other => return Err(Invalid::new("act", other, "it is pause, resume, trip or reset").into()),
    };
    let word = caller.word(body.reason)?;
    app.store.operate_gate(OperateGate { gate: gate.clone(), act, word }).await?;
    ok(&GateLine::from(&app.store.show_gate(&gate).await?))
}

/// List what was set, by pattern
#[utoipa::path(get, path = "/v1/rules", tag = "gates", security(("key" = ["read"])),
    responses((status = 200, body = Page<RuleLine>)))]
async fn list_rules(State(app): State<App>, caller: Caller) -> Result<Response, Problem> {
    caller.need_operator(Scope::Read)?;
    let rules = app.store.list_rules(BATCH_MAX).await?;
    ok(&Page::whole(rules.iter().map(RuleLine::from).collect()))
}

/// What a gate allows: the whole rule. What is not named is unlimited.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RuleBody {
    /// So many per time: 50/s, 30/m, 5/10s
    #[schema(pattern = "^[0-9]{1,7}/[0-9]{0,6}(ms|s|m|h|d)$")]
    rate: Option<String>,
    /// Most that may pass at once after a quiet time
    #[schema(minimum = 1, maximum = 1000000)]
    burst: Option<u32>,
    /// Tokens of the rate that a job takes
    #[schema(minimum = 1, maximum = 1000000)]
    cost: Option<u32>,
    /// Jobs inside at once
    #[schema(minimum = 1, maximum = 1000000)]
    concurrency: Option<u32>,
    /// Failures in a row that open its breaker
    #[schema(minimum = 1, maximum = 1000)]
    breaker_failures: Option<u32>,
    /// For how long nothing passes then
    #[schema(minimum = 1, maximum = 86400000)]
    breaker_cooldown_ms: Option<u64>,
    /// Its share beside the other lines of a queue
    #[schema(minimum = 1, maximum = 1000)]
    weight: Option<u32>,
    /// Why, in a person's words: it goes into the journal
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// A change of a rule: what is not named stays, `null` takes the limit away.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ChangeRuleBody {
    /// So many per time: 50/s, 30/m, 5/10s; null takes `burst` and `cost` along
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<String>, pattern = "^[0-9]{1,7}/[0-9]{0,6}(ms|s|m|h|d)$")]
    rate: Option<Option<String>>,
    /// Most that may pass at once after a quiet time; null: a tenth of a second's worth
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000000)]
    burst: Option<Option<u32>>,
    /// Tokens of the rate that a job takes; null: 1
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000000)]
    cost: Option<Option<u32>>,
    /// Jobs inside at once
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000000)]
    concurrency: Option<Option<u32>>,
    /// Failures in a row that open its breaker; null: no breaker
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    breaker_failures: Option<Option<u32>>,
    /// For how long nothing passes then
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 86400000)]
    breaker_cooldown_ms: Option<Option<u64>>,
    /// Its share beside the other lines of a queue; null: 1
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    weight: Option<Option<u32>>,
    /// Why, in a person's words: it goes into the journal
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// A member that is there, also where it is `null`.
fn named<'de, D: Deserializer<'de>, T: Deserialize<'de>>(member: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(member).map(Some)
}

/// Change some parts of a rule
///
/// A gate or a beginning without a rule of its own gets one. The answer is the whole rule.
#[utoipa::path(patch, path = "/v1/rules/{pattern}", tag = "gates", request_body = ChangeRuleBody, security(("key" = ["operate"])),
    params(("pattern" = String, Path, description = "A gate, or a beginning such as domain:*")),
    responses((status = 200, body = RuleLine)))]
async fn change_rule(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operators<Operate>, ChangeRuleBody>,
) -> Result<Response, Problem> {
    let (pattern, word) = (path.get::<Pattern>("pattern")?, caller.word(body.reason)?);
    let rate = body.rate.map(|rate| rate.as_deref().map(str::parse::<Rate>).transpose()).transpose()?;
    let patch = RulePatch {
        rate: Part::of(rate),
        burst: Part::of(body.burst),
        cost: Part::of(body.cost),
        concurrency: Part::of(body.concurrency),
        breaker_failures: Part::of(body.breaker_failures),
        breaker_cooldown: Part::of(body.breaker_cooldown_ms.map(|ms| ms.map(Duration::from_millis))),
        weight: Part::of(body.weight),
    };
    let rule = app.store.patch_rule(PatchRule { pattern: pattern.clone(), patch, word }).await?;
    ok(&RuleLine::from(&(pattern, rule)))
}

/// Set the whole rule of a gate, or of all whose name begins alike
#[utoipa::path(put, path = "/v1/rules/{pattern}", tag = "gates", request_body = RuleBody, security(("key" = ["operate"])),
    params(("pattern" = String, Path, description = "A gate, or a beginning such as domain:*")),
    responses((status = 200, body = RuleLine)))]
async fn set_rule(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operators<Operate>, RuleBody>,
) -> Result<Response, Problem> {
    let (pattern, word) = (path.get::<Pattern>("pattern")?, caller.word(body.reason)?);
    let rate = body.rate.as_deref().map(str::parse::<Rate>).transpose()?.map(|rate| rate.with(body.burst, body.cost));
    if rate.is_none() && (body.burst.is_some() || body.cost.is_some()) {
        return Err(Problem::invalid("rate", "burst and cost need a rate"));
    }
    let breaker = match (body.breaker_failures, body.breaker_cooldown_ms) {
        (Some(failures), Some(cooldown)) => Some(Breaker { failures, cooldown: Duration::from_millis(cooldown) }),
        (None, None) => None,
        _ => return Err(Problem::invalid("breaker_failures", "a breaker has failures and a cooldown")),
    };
    let rule = GateRule { rate, concurrency: body.concurrency, breaker, weight: body.weight.unwrap_or(1) };
    rule.check()?;
    app.store.set_rule(SetRule { pattern: pattern.clone(), rule: Some(rule.clone()), word }).await?;
    ok(&RuleLine::from(&(pattern, rule)))
}

/// Remove a rule
#[utoipa::path(delete, path = "/v1/rules/{pattern}", tag = "gates", params(("pattern" = String, Path)),
    security(("key" = ["operate"])), responses((status = 204)))]
async fn remove_rule(State(app): State<App>, caller: Caller, path: Segments) -> Result<Response, Problem> {
    caller.need_operator(Scope::Operate)?;
    let word = caller.word(None)?;
    app.store.set_rule(SetRule { pattern: path.get("pattern")?, rule: None, word }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
