//! What `tenure.complete_in` and `tenure.advance_page` are given, whoever sends it.

use tenure_core::Json;
use tenure_store::run::AdvancePage;
use tenure_store::user_tx::CompleteJob;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::call::Param;
use crate::value::{Moment, millis};

/// Completes a job.
pub(crate) const COMPLETE: &str = "select tenure.complete_in($1, $2, $3, $4::text::jsonb, $5::text::jsonb, $6, $7, $8)";
/// Moves a partition, and completes its page.
pub(crate) const ADVANCE: &str =
    "select tenure.advance_page($1, $2, $3, $4, $5, $6, $7::text::jsonb, $8, $9, $10::text::jsonb)";

/// A completion as columns.
pub(crate) struct Completion<'a> {
    pub(crate) worker: i32,
    pub(crate) lease: i64,
    pub(crate) job: Uuid,
    pub(crate) result: Option<&'a str>,
    pub(crate) usage: Option<&'a str>,
    pub(crate) now: Option<Moment>,
    pub(crate) health: Option<i32>,
    pub(crate) hold_ms: Option<i64>,
}

/// A page's completion as columns.
pub(crate) struct Advance<'a> {
    pub(crate) page: Completion<'a>,
    pub(crate) rows: i64,
    pub(crate) next: Option<Uuid>,
}

impl<'a> Completion<'a> {
    pub(crate) fn new(request: &'a CompleteJob, now: Option<Moment>) -> Self {
        let reported = request.to_end_job();
        Self {
            worker: request.worker.0,
            lease: request.lease.0,
            job: *request.job.as_uuid(),
            result: request.result.as_ref().map(Json::as_str),
            usage: request.usage.as_ref().map(Json::as_str),
            now,
            health: reported.health().map(|health| i32::from(health.code())),
            hold_ms: reported.hold().map(millis),
        }
    }

    pub(crate) fn params(&self) -> [Param<'_>; 8] {
        [
            (&self.worker, Type::INT4),
            (&self.lease, Type::INT8),
            (&self.job, Type::UUID),
            (&self.result, Type::TEXT),
            (&self.usage, Type::TEXT),
            (&self.now, Type::TIMESTAMPTZ),
            (&self.health, Type::INT4),
            (&self.hold_ms, Type::INT8),
        ]
    }
}

impl<'a> Advance<'a> {
    pub(crate) fn new(request: &'a AdvancePage, now: Option<Moment>) -> Self {
        // More rows than a number of the server's are refused by it, as those below zero are.
        let rows = i64::try_from(request.rows).unwrap_or(-1);
        Self { page: Completion::new(&request.page, now), rows, next: request.next.map(|job| *job.as_uuid()) }
    }

    pub(crate) fn params(&self) -> [Param<'_>; 10] {
        let page = &self.page;
        [
            (&page.worker, Type::INT4),
            (&page.lease, Type::INT8),
            (&page.job, Type::UUID),
            (&self.rows, Type::INT8),
            (&self.next, Type::UUID),
            (&page.now, Type::TIMESTAMPTZ),
            (&page.usage, Type::TEXT),
            (&page.health, Type::INT4),
            (&page.hold_ms, Type::INT8),
            (&page.result, Type::TEXT),
        ]
    }
}
