//! Rows of the journal, newest first.

use tenure_core::journal::JournalEvent;
use tenure_store::StoreError;
use tenure_store::journal::{DISORDER_MAX, JournalFilter, JournalFound, LOOKED_AT_MAX, LOOKED_AT_PAGE, SUBJECTS};
use tokio_postgres::types::Type;

use super::journal_row;
use crate::call::Param;
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{Moment, get, time_maybe};

const JOURNAL_BEFORE: Statement = Statement { name: "journal_before", sql: "select tenure.journal_before($1) as id" };

impl PgStore {
    /// Rows that match, a walk of bounded length.
    pub(super) async fn list_rows(&self, filter: &JournalFilter) -> Result<JournalFound, StoreError> {
        let mut found = JournalFound { next: Some(self.begin_of(filter).await?), ..JournalFound::default() };
        while let Some(before) = found.next {
            let room = filter.limit.saturating_sub(u32::try_from(found.rows.len()).unwrap_or(u32::MAX));
            if room == 0 || found.looked_at >= LOOKED_AT_MAX {
                break;
            }
            self.look_below(filter, before, room, &mut found).await?;
        }
        Ok(found)
    }

    /// The id that the walk begins below: far from what came later than it is asked for.
    async fn begin_of(&self, filter: &JournalFilter) -> Result<i64, StoreError> {
        let before = filter.before.unwrap_or(i64::MAX);
        let Some(until) = filter.until else { return Ok(before) };
        let until = Moment(until.plus(DISORDER_MAX));
        let rows = self.call(Desk::Long, JOURNAL_BEFORE, &[(&until, Type::TIMESTAMPTZ)]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("journal_before answered nothing".to_owned()))?;
        Ok(before.min(get(row, "id")?))
    }

    /// One page of the walk.
    async fn look_below(
        &self,
        filter: &JournalFilter,
        before: i64,
        room: u32,
        found: &mut JournalFound,
    ) -> Result<(), StoreError> {
        let (page, room) = (i64::from(LOOKED_AT_PAGE), i64::from(room));
        let events: Vec<i16> = filter.events.iter().map(|event: &JournalEvent| event.code()).collect();
        let events = Some(events).filter(|events| !events.is_empty());
        let (job, names) = (filter.job.map(|job| *job.as_uuid()), SUBJECTS.as_slice());
        let (since, until) = (filter.since.map(Moment), filter.until.map(Moment));
        let params: [Param<'_>; 11] = [
            (&before, Type::INT8),
            (&page, Type::INT8),
            (&room, Type::INT8),
            (&filter.acts_only, Type::BOOL),
            (&events, Type::INT2_ARRAY),
            (&filter.actor, Type::TEXT),
            (&job, Type::UUID),
            (&filter.subject, Type::TEXT),
            (&names, Type::TEXT_ARRAY),
            (&since, Type::TIMESTAMPTZ),
            (&until, Type::TIMESTAMPTZ),
        ];
        let rows = self.call(Desk::Long, statement::LIST_JOURNAL, &params).await?;
        let Some(walk) = rows.first() else { return Err(StoreError::Corrupt("a walk answered nothing".to_owned())) };
        let looked_at = u32::try_from(get::<i64>(walk, "looked_at")?).unwrap_or(u32::MAX);
        let is_over = match (filter.since, time_maybe(walk, "last_at")?) {
            (Some(since), Some(last)) => last.plus(DISORDER_MAX) < since,
            _ => false,
        };
        let is_full = rows.len() as i64 == room && get::<Option<i64>>(walk, "id")?.is_some();
        found.looked_at += looked_at;
        found.next = get::<Option<i64>>(walk, "last_id")?;
        if is_over || (!is_full && looked_at < LOOKED_AT_PAGE) {
            found.next = None;
        }
        for row in &rows {
            if get::<Option<i64>>(row, "id")?.is_some() {
                found.rows.push(journal_row(row)?);
            }
        }
        Ok(())
    }
}
