//! Whether the process lives, and whether it can do its work.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use tenure::row;

use super::Refused;
use crate::app::App;
use crate::code::{Code, Refusal};

/// It answers, so it lives.
pub(super) async fn live() -> Json<Value> {
    Json(json!({"status": "live"}))
}

/// Ready with its database; with its broker as well only where the settings require it, since polling does without.
pub(super) async fn ready(State(app): State<App>) -> Result<Json<Value>, Refused> {
    let asked = app.database().query("select 1 as one", row![]).await;
    asked.map_err(|error| Refusal::new(Code::DbUnavailable, error))?;
    let queue = app.broker().map(tenure::rabbitmq::Broker::is_up);
    if app.settings().health_requires_queue && queue != Some(true) {
        let why = match queue {
            Some(_) => "the broker is away, and BPC_HEALTH_REQUIRE_QUEUE requires it",
            None => "there is no broker, and BPC_HEALTH_REQUIRE_QUEUE requires one: set BPC_QUEUE_ENABLED",
        };
        return Err(Refusal::new(Code::QueueUnavailable, why).into());
    }
    Ok(Json(json!({"status": "ready", "queue": queue})))
}
