//! The claim of a queue with lines: whose turn it is, and what their gates let through.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tenure_core::turns::Share;
use tenure_core::{Line, QueueName};
use tenure_store::StoreError;
use tenure_store::lease::{ClaimJobs, Claimed};
use tenure_store::lines::{LOOK_LINES_MAX, Served};
use tokio_postgres::types::Type;

use crate::call::Param;
use crate::claimed::{self, Answer};
use crate::lease::CLAIM_KIB;
use crate::pool::Desk;
use crate::statement;
use crate::store::PgStore;
use crate::value::get;

/// When a gate is tried again that another claim had locked.
const BUSY_RETRY: Duration = Duration::from_millis(5);

impl PgStore {
    /// Takes due jobs of a queue with lines. A claim that finds its lines empty or closed asks the next ones.
    pub(crate) async fn claim_lines(&self, request: &ClaimJobs) -> Result<Option<Claimed>, StoreError> {
        let began = self.lines().now();
        let mut looked = self.lines().look_due(&request.queue);
        if looked {
            self.look_for_lines(&request.queue).await?;
        }
        loop {
            let shares = self.lines().share(&request.queue, request.limit, began);
            if shares.is_empty() {
                // What the known lines cannot give, others may have.
                if std::mem::replace(&mut looked, true) {
                    return Ok(None);
                }
                self.look_for_lines(&request.queue).await?;
                continue;
            }
            if let Some(claimed) = self.claim_shares(request, shares).await? {
                return Ok(Some(claimed));
            }
        }
    }

    async fn claim_shares(&self, request: &ClaimJobs, shares: Vec<Share>) -> Result<Option<Claimed>, StoreError> {
        let lines: Vec<&str> = shares.iter().map(|share| share.line.as_str()).collect();
        let jobs: Vec<i32> = shares.iter().map(|share| i32::try_from(share.jobs).unwrap_or(i32::MAX)).collect();
        let order: Vec<i16> = request.order().iter().map(|priority| priority.get().into()).collect();
        let (queue, now) = (request.queue.as_str(), self.moment());
        let (limit, careful) = (i64::from(self.careful().limit(request)), self.careful().contains(&request.queue));
        let params: [Param<'_>; 9] = [
            (&request.worker.0, Type::INT4),
            (&queue, Type::TEXT),
            (&limit, Type::INT8),
            (&lines, Type::TEXT_ARRAY),
            (&jobs, Type::INT4_ARRAY),
            (&order, Type::INT2_ARRAY),
            (&now, Type::TIMESTAMPTZ),
            (&CLAIM_KIB, Type::INT8),
            (&careful, Type::BOOL),
        ];
        let rows = match self.try_call(Desk::Short, statement::CLAIM_LINES, &params).await {
            Err(failed) if self.careful().learn_failure(&request.queue, &failed) => {
                return Box::pin(self.claim_shares(request, shares)).await;
            }
            rows => rows?,
        };
        let answer = claimed::read(&rows)?;
        if let Some(answer) = &answer {
            self.careful().learn_success(&request.queue, answer.unreadable.len());
        }
        let mut closed: HashMap<&Line, Option<Duration>> = HashMap::new();
        let mut took: HashMap<&Line, u32> = HashMap::new();
        if let Some(answer) = &answer {
            for line in &answer.lines {
                *took.entry(line).or_default() += 1;
            }
            for (line, why, until) in &answer.closed {
                let busy = (why == "busy").then_some(BUSY_RETRY);
                closed.insert(line, busy.or(until.map(|until| until.since(answer.due))));
            }
        }
        let serve = |share: Share| Served {
            took: took.get(&share.line).copied().unwrap_or(0),
            closed: closed.get(&share.line).copied(),
            share,
        };
        let served: Vec<Served> = shares.into_iter().map(serve).collect();
        self.lines().served(&request.queue, &served);
        let Some(Answer { claimed: Some(claimed), unreadable, .. }) = answer else { return Ok(None) };
        self.fail_unreadable(request.worker, claimed.lease, unreadable).await?;
        Ok(Some(claimed))
    }

    /// Finds out which lines have something due.
    async fn look_for_lines(&self, queue: &QueueName) -> Result<(), StoreError> {
        let (began, after) = (Instant::now(), self.lines().look_after(queue));
        let (name, limit, now) = (queue.as_str(), i64::try_from(LOOK_LINES_MAX).unwrap_or(i64::MAX), self.moment());
        let behind = after.as_ref().map(Line::as_str);
        let params: [Param<'_>; 4] =
            [(&name, Type::TEXT), (&behind, Type::TEXT), (&limit, Type::INT8), (&now, Type::TIMESTAMPTZ)];
        let rows = self.call(Desk::Short, statement::LIST_LINES, &params).await?;
        let mut found = Vec::with_capacity(rows.len());
        let mut last = None;
        for row in &rows {
            let line = Line::from_store(get(row, "line")?);
            if get(row, "due")? {
                let weight: i32 = get(row, "weight")?;
                found.push((line.clone(), u32::try_from(weight).unwrap_or(1)));
            }
            last = Some(line);
        }
        let stopped = last.filter(|_| rows.len() == LOOK_LINES_MAX);
        self.lines().learn(queue, after.as_ref(), found, stopped, began.elapsed());
        Ok(())
    }
}
