//! Lists of jobs and searches in them, newest first: ids by the index that keeps them flat, then a look at each.

use tenure_core::{How, JobId, State};
use tenure_store::StoreError;
use tenure_store::record::{JobFilter, JobSummary, JobsFound, SEARCHED_BYTES_MAX, SEARCHED_MAX, SEARCHED_PAGE};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::call::Param;
use crate::jobs::{summary, tenant};
use crate::pool::Desk;
use crate::statement;
use crate::store::PgStore;
use crate::value::{Moment, get, millis};

impl PgStore {
    /// Jobs that match.
    pub(crate) async fn list(&self, filter: &JobFilter) -> Result<Vec<JobSummary>, StoreError> {
        let ids: Vec<Uuid> = self.list_ids(filter).await?.iter().map(|row| get(row, "id")).collect::<Result<_, _>>()?;
        self.summarize(filter, &ids).await
    }

    /// Jobs that match and contain a text, which is in lower case.
    pub(crate) async fn search(&self, filter: &JobFilter, text: &str) -> Result<JobsFound, StoreError> {
        let tenant = tenant(&filter.sight);
        let mut page = JobFilter { limit: SEARCHED_PAGE, ..filter.clone() };
        let (mut found, mut bytes, mut looked_at, mut next) = (Vec::new(), 0, 0, None);
        'walk: loop {
            let ids = self.list_ids(&page).await?;
            let ids: Vec<Uuid> = ids.iter().map(|row| get(row, "id")).collect::<Result<_, _>>()?;
            let params: [Param<'_>; 3] = [(&ids, Type::UUID_ARRAY), (&text, Type::TEXT), (&tenant, Type::TEXT)];
            let rows = self.call_within(tenant.as_deref(), Desk::Long, statement::SEARCH_JOBS, &params).await?;
            for row in &rows {
                if looked_at == SEARCHED_MAX || bytes > SEARCHED_BYTES_MAX || found.len() == filter.limit as usize {
                    break 'walk;
                }
                let id: Uuid = get(row, "id")?;
                looked_at += 1;
                bytes += u64::from(get::<i32>(row, "bytes")?.unsigned_abs());
                next = Some(JobId::from_uuid(id));
                if get(row, "found")? {
                    found.push(id);
                }
            }
            if ids.len() < SEARCHED_PAGE as usize {
                next = None;
                break;
            }
            page.before = ids.last().map(|id| JobId::from_uuid(*id));
        }
        Ok(JobsFound { jobs: self.summarize(filter, &found).await?, looked_at, next })
    }

    async fn summarize(&self, filter: &JobFilter, ids: &[Uuid]) -> Result<Vec<JobSummary>, StoreError> {
        let tenant = tenant(&filter.sight);
        let params: [Param<'_>; 2] = [(&ids, Type::UUID_ARRAY), (&tenant, Type::TEXT)];
        let rows = self.call_within(tenant.as_deref(), Desk::Long, statement::SUMMARIZE_JOBS, &params).await?;
        // A job may have moved on between the two reads; it is left out rather than shown under the wrong state.
        let jobs = rows.iter().map(summary).collect::<Result<Vec<_>, _>>()?;
        Ok(jobs.into_iter().filter(|job| filter.state.is_none_or(|state| state == job.state)).collect())
    }

    /// The ids of a page, each state by the index that keeps it flat.
    async fn list_ids(&self, filter: &JobFilter) -> Result<Vec<Row>, StoreError> {
        let tenant = tenant(&filter.sight);
        let queue = filter.queue.as_ref().map(ToString::to_string);
        let kind = filter.kind.as_ref().map(ToString::to_string);
        let (from, before) = filter.ids();
        let (from, before) = (from.map(|job| *job.as_uuid()), before.map(|job| *job.as_uuid()));
        let (since, until) = (filter.since.map(Moment), filter.until.map(Moment));
        let limit = i64::from(filter.limit);
        let common: [Param<'_>; 8] = [
            (&tenant, Type::TEXT),
            (&queue, Type::TEXT),
            (&kind, Type::TEXT),
            (&before, Type::UUID),
            (&limit, Type::INT8),
            (&from, Type::UUID),
            (&since, Type::TIMESTAMPTZ),
            (&until, Type::TIMESTAMPTZ),
        ];
        let list = async |statement, params: Vec<Param<'_>>| {
            self.call_within(tenant.as_deref(), Desk::Long, statement, &params).await
        };
        if filter.stuck_for.is_some() || filter.state == Some(State::Running) {
            let (stuck, now) = (filter.stuck_for.map(millis), self.moment());
            let own: [Param<'_>; 2] = [(&stuck, Type::INT8), (&now, Type::TIMESTAMPTZ)];
            return list(statement::LIST_RUNNING, [common.as_slice(), &own].concat()).await;
        }
        let ready = |code: i16| (statement::LIST_READY, code);
        let ended = |how: How| (statement::LIST_UNSUCCESSFUL, how.code());
        let (statement, code) = match filter.state {
            Some(State::Queued) => ready(0),
            Some(State::Retryable) => ready(1),
            Some(State::Waiting) => ready(2),
            Some(State::Failed) => ended(How::Failed),
            Some(State::Dead) => ended(How::Dead),
            Some(State::Canceled) => ended(How::Canceled),
            None | Some(State::Succeeded | State::Running) => {
                let succeeded = filter.state.is_some();
                let own: [Param<'_>; 1] = [(&succeeded, Type::BOOL)];
                return list(statement::LIST_JOBS, [common.as_slice(), &own].concat()).await;
            }
        };
        let own: [Param<'_>; 1] = [(&code, Type::INT2)];
        list(statement, [common.as_slice(), &own].concat()).await
    }
}
