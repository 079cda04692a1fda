//! Workers: what they hold and how it ends.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tenure_core::{Health, How, JobId, Json, LeaseNo, QueueName, Timestamp, WorkerId};
use tenure_store::lease::{
    CLAIM_KIB_MAX, ClaimJobs, Claimed, EndJob, EndJobs, Ended, Ending, GateWord, Reclaimed, RenewLeases, Renewed,
    check_listed,
};
use tenure_store::{LeaseStore, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::call::{Failed, Param};
use crate::claimed::{self, Answer};
use crate::error::{is_locked_out, is_taken};
use crate::floor::Seen;
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{Moment, get, how, job_id, job_ids, millis, uuids};

const FIND_CANCEL_REQUESTS: Statement = Statement {
    name: "find_cancel_requests",
    sql: "select job from tenure.cancel_request where job = any ($1::uuid[])",
};

const FIND_LEASES: Statement = Statement {
    name: "find_leases",
    sql: "select no, (extract(epoch from expires_at - renewed_at) * 1000)::bigint as ttl_ms from tenure.lease \
          where worker = $1 and no = any ($2::bigint[]) order by no",
};

const NEWEST_LEASE: Statement = Statement {
    name: "newest_lease",
    sql: "select case when is_called then last_value else 0 end as newest from tenure.lease_no_seq",
};

/// [`CLAIM_KIB_MAX`] as a parameter.
pub(crate) const CLAIM_KIB: i64 = CLAIM_KIB_MAX as i64;

/// A success that says nothing else of its gate: the usual ending, which has a statement of its own.
fn is_plain_success(end: &EndJob) -> bool {
    end.ending.how() == How::Succeeded && end.gate == GateWord::default()
}

#[async_trait]
impl LeaseStore for PgStore {
    async fn claim_jobs(&self, request: ClaimJobs) -> Result<Option<Claimed>, StoreError> {
        request.check()?;
        if self.lines().is_lined(&request.queue) {
            return self.claim_lines(&request).await;
        }
        let claimed = match self.elect_sweep(&request.queue).await? {
            false => self.claim(&request, self.floors().of(&request.queue)).await?,
            true => {
                let began = Instant::now();
                let claimed = self.claim(&request, Default::default()).await?;
                self.floors().swept(&request.queue, began.elapsed());
                claimed
            }
        };
        // The claim has learnt that the queue has lines.
        if claimed.is_none() && self.lines().is_lined(&request.queue) {
            return self.claim_lines(&request).await;
        }
        Ok(claimed)
    }

    async fn renew_leases(&self, request: RenewLeases) -> Result<Renewed, StoreError> {
        let numbers: Vec<i64> = request.leases.iter().map(|lease| lease.0).collect();
        let now = self.moment();
        let params: [Param<'_>; 3] =
            [(&request.worker.0, Type::INT4), (&numbers, Type::INT8_ARRAY), (&now, Type::TIMESTAMPTZ)];
        let mut renewed = Renewed::default();
        for row in self.call(Desk::Short, statement::RENEW_LEASES, &params).await? {
            renewed.leases.push(LeaseNo(get(&row, "no")?));
            renewed.cancel_requested.extend(job_ids(&row, "cancel_requested")?);
        }
        renewed.leases.sort_unstable();
        Ok(renewed)
    }

    async fn end_jobs(&self, request: EndJobs) -> Result<Vec<Ended>, StoreError> {
        request.check()?;
        self.end_jobs_of(&request).await
    }

    async fn end_leases(&self, requests: Vec<EndJobs>) -> Result<Vec<Vec<Ended>>, StoreError> {
        requests.iter().try_for_each(EndJobs::check)?;
        let worker = requests.first().map(|request| request.worker);
        let is_success = is_plain_success;
        // Successes of one worker travel together; whatever else has happened is rare and goes lease by lease.
        let goes_along = |request: &EndJobs| Some(request.worker) == worker && request.jobs.iter().all(is_success);
        let together: Vec<&EndJobs> = requests.iter().filter(|request| goes_along(request)).collect();
        let mut completed = match self.complete(Desk::Short, &together).await {
            Err(Failed::Said(error)) if is_locked_out(&error) || is_taken(&error) => Vec::new(),
            answer => answer?,
        }
        .into_iter();
        let mut answers = Vec::with_capacity(requests.len());
        for request in &requests {
            let known = if goes_along(request) { completed.next() } else { None };
            answers.push(match known {
                Some(known) => known,
                None => self.end_jobs_of(request).await?,
            });
        }
        Ok(answers)
    }

    async fn find_cancel_requests(&self, jobs: Vec<JobId>) -> Result<Vec<JobId>, StoreError> {
        let params: [Param<'_>; 1] = [(&uuids(jobs), Type::UUID_ARRAY)];
        let rows = self.call(Desk::Short, FIND_CANCEL_REQUESTS, &params).await?;
        rows.iter().map(|row| job_id(row, "job")).collect()
    }

    async fn find_endings(
        &self,
        worker: WorkerId,
        lease: LeaseNo,
        jobs: Vec<JobId>,
    ) -> Result<Vec<Option<How>>, StoreError> {
        check_listed(&jobs)?;
        let ids = uuids(jobs.iter().copied());
        let params: [Param<'_>; 3] = [(&worker.0, Type::INT4), (&lease.0, Type::INT8), (&ids, Type::UUID_ARRAY)];
        let rows = self.call(Desk::Short, statement::LOOK_UP_ENDINGS, &params).await?;
        let found: HashMap<JobId, How> =
            rows.iter().map(|row| Ok((job_id(row, "job")?, how(row)?))).collect::<Result<_, StoreError>>()?;
        Ok(jobs.iter().map(|job| found.get(job).copied()).collect())
    }

    async fn drop_leases(&self, worker: WorkerId, leases: Vec<LeaseNo>) -> Result<Vec<LeaseNo>, StoreError> {
        let numbers: Vec<i64> = leases.iter().map(|lease| lease.0).collect();
        let params: [Param<'_>; 2] = [(&worker.0, Type::INT4), (&numbers, Type::INT8_ARRAY)];
        let rows = self.call(Desk::Short, statement::DROP_LEASES, &params).await?;
        rows.iter().map(|row| get(row, "no").map(LeaseNo)).collect()
    }

    async fn find_leases(
        &self,
        worker: WorkerId,
        leases: Vec<LeaseNo>,
    ) -> Result<Vec<(LeaseNo, Duration)>, StoreError> {
        let leases: Vec<i64> = leases.iter().map(|lease| lease.0).collect();
        let params: [Param<'_>; 2] = [(&worker.0, Type::INT4), (&leases, Type::INT8_ARRAY)];
        let rows = self.call(Desk::Short, FIND_LEASES, &params).await?;
        let lease =
            |row| Ok((LeaseNo(get(row, "no")?), Duration::from_millis(get::<i64>(row, "ttl_ms")?.cast_unsigned())));
        rows.iter().map(lease).collect()
    }

    async fn newest_lease(&self) -> Result<LeaseNo, StoreError> {
        let rows = self.call(Desk::Short, NEWEST_LEASE, &[]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("the sequence of leases is empty".to_owned()))?;
        get(row, "newest").map(LeaseNo)
    }

    async fn release_unknown(
        &self,
        worker: WorkerId,
        known: Vec<LeaseNo>,
        newest: LeaseNo,
    ) -> Result<Vec<JobId>, StoreError> {
        let numbers: Vec<i64> = known.iter().map(|lease| lease.0).collect();
        let now = self.moment();
        let params: [Param<'_>; 4] =
            [(&worker.0, Type::INT4), (&numbers, Type::INT8_ARRAY), (&newest.0, Type::INT8), (&now, Type::TIMESTAMPTZ)];
        let rows = self.call(Desk::Short, statement::RELEASE_UNKNOWN, &params).await?;
        rows.iter().map(|row| job_id(row, "job")).collect()
    }

    async fn reclaim_jobs(&self, by: Option<WorkerId>, leases_max: u32) -> Result<Vec<Reclaimed>, StoreError> {
        let by = by.map(|worker| worker.0);
        let (max, now) = (i32::try_from(leases_max).unwrap_or(i32::MAX), self.moment());
        let params: [Param<'_>; 3] = [(&by, Type::INT4), (&max, Type::INT4), (&now, Type::TIMESTAMPTZ)];
        let rows = self.call(Desk::Short, statement::RECLAIM_JOBS, &params).await?;
        rows.iter().map(reclaimed).collect()
    }
}

impl PgStore {
    async fn claim(
        &self,
        request: &ClaimJobs,
        floors: ([Option<Timestamp>; 4], [uuid::Uuid; 4]),
    ) -> Result<Option<Claimed>, StoreError> {
        let times: Vec<Option<Moment>> = floors.0.iter().map(|time| time.map(Moment)).collect();
        let (jobs, queue) = (floors.1.to_vec(), request.queue.as_str());
        let now = self.moment();
        let order: Vec<i16> = request.order().iter().map(|priority| priority.get().into()).collect();
        let (limit, careful) = (i64::from(self.careful().limit(request)), self.careful().contains(&request.queue));
        let params: [Param<'_>; 9] = [
            (&request.worker.0, Type::INT4),
            (&queue, Type::TEXT),
            (&limit, Type::INT8),
            (&times, Type::TIMESTAMPTZ_ARRAY),
            (&jobs, Type::UUID_ARRAY),
            (&now, Type::TIMESTAMPTZ),
            (&order, Type::INT2_ARRAY),
            (&CLAIM_KIB, Type::INT8),
            (&careful, Type::BOOL),
        ];
        let rows = match self.try_call(Desk::Short, statement::CLAIM_JOBS, &params).await {
            Err(failed) if self.careful().learn_failure(&request.queue, &failed) => {
                return Box::pin(self.claim(request, floors)).await;
            }
            rows => rows?,
        };
        let Some(Answer { claimed, unreadable, due, .. }) = claimed::read(&rows)? else { return Ok(None) };
        self.careful().learn_success(&request.queue, unreadable.len());
        let Some(claimed) = claimed else {
            self.lines().set_lined(&request.queue);
            return Ok(None);
        };
        let places = claimed.jobs.iter().map(|job| (job.priority, (job.run_at, job.id))).collect();
        // Fewer than asked for are all there are, unless their payloads have filled the claim.
        let kib: usize = claimed.jobs.iter().map(|job| job.payload.as_str().len().div_ceil(1 << 10).max(1)).sum();
        let is_full = kib + unreadable.len() >= CLAIM_KIB_MAX as usize;
        let drained = !is_full && i64::try_from(rows.len()).unwrap_or(i64::MAX) < limit;
        self.floors().learn(&request.queue, &Seen { now: due, places, drained });
        self.fail_unreadable(request.worker, claimed.lease, unreadable).await?;
        Ok(Some(claimed))
    }

    /// A row that somebody wrote past the verbs and that cannot be read fails alone; its batch goes on.
    pub(crate) async fn fail_unreadable(
        &self,
        worker: WorkerId,
        lease: LeaseNo,
        jobs: Vec<(JobId, StoreError)>,
    ) -> Result<(), StoreError> {
        for (job, error) in jobs {
            let text = format!(r#"{{"code":"unreadable","message":{}}}"#, tenure_core::json::quote(&error.to_string()));
            let ending = Ending::Failed { error: Json::parse("error", text)? };
            self.end_jobs(EndJobs { worker, lease, jobs: vec![EndJob::new(job, ending)] }).await?;
        }
        Ok(())
    }

    async fn elect_sweep(&self, queue: &QueueName) -> Result<bool, StoreError> {
        let now = self.moment();
        let Some(gap) = self.floors().sweep_due(queue, now.is_some()) else { return Ok(false) };
        let (name, gap) = (queue.as_str(), millis(gap));
        let params: [Param<'_>; 3] = [(&name, Type::TEXT), (&gap, Type::INT8), (&now, Type::TIMESTAMPTZ)];
        Ok(!self.call(Desk::Short, statement::ELECT_SWEEP, &params).await?.is_empty())
    }

    async fn end_jobs_of(&self, request: &EndJobs) -> Result<Vec<Ended>, StoreError> {
        match self.end(Desk::Short, request).await {
            // One of these attempts is in somebody's open transaction: the others must not wait for it.
            Err(Failed::Said(error)) if is_locked_out(&error) => self.end_one_by_one(request).await,
            answer => Ok(answer?),
        }
    }

    async fn end(&self, desk: Desk, request: &EndJobs) -> Result<Vec<Ended>, Failed> {
        if request.jobs.iter().all(is_plain_success) {
            match self.complete(desk, &[request]).await {
                // One of them has ended before.
                Err(Failed::Said(error)) if is_taken(&error) => {}
                answer => return Ok(answer?.pop().unwrap_or_default()),
            }
        }
        let ended = self.write_endings(desk, request).await?;
        self.answer(request, |end| ended.get(&end.job).copied()).await
    }

    /// What became of each ending: those of `ended` are written now, of the others the store is asked.
    async fn answer(&self, request: &EndJobs, ended: impl Fn(&EndJob) -> Option<How>) -> Result<Vec<Ended>, Failed> {
        let unwritten: Vec<&EndJob> = request.jobs.iter().filter(|end| ended(end).is_none()).collect();
        let told = if unwritten.is_empty() { HashMap::new() } else { self.refuse(request, &unwritten).await? };
        let answer = |end: &EndJob| match (ended(end), told.get(&end.job)) {
            (Some(how), _) => Ended::Now(how),
            (None, Some(told)) => *told,
            (None, None) => Ended::LeaseLost { how: None },
        };
        Ok(request.jobs.iter().map(answer).collect())
    }

    /// Ends attempts of any leases of one worker as succeeded. The reply names only what was not written: usually nothing.
    async fn complete(&self, desk: Desk, requests: &[&EndJobs]) -> Result<Vec<Vec<Ended>>, Failed> {
        let Some(worker) = requests.first().map(|request| request.worker.0) else { return Ok(Vec::new()) };
        let ends = || requests.iter().flat_map(|request| request.jobs.iter().map(move |end| (request.lease.0, end)));
        let numbers: Vec<i64> = requests.iter().map(|request| request.lease.0).collect();
        let (leases, jobs): (Vec<i64>, Vec<uuid::Uuid>) =
            ends().map(|(lease, end)| (lease, *end.job.as_uuid())).unzip();
        // Most have nothing to tell: no array is shorter than one of nulls.
        let texts = |pick: fn(&EndJob) -> Option<&Json>| {
            let any = ends().any(|(_, end)| pick(end).is_some());
            any.then(|| ends().map(|(_, end)| pick(end).map(|json| json.as_str().to_owned())).collect::<Vec<_>>())
        };
        let (results, usages) = (texts(|end| end.ending.details().1), texts(|end| end.ending.details().2));
        let now = self.moment();
        let params: [Param<'_>; 7] = [
            (&worker, Type::INT4),
            (&numbers, Type::INT8_ARRAY),
            (&leases, Type::INT8_ARRAY),
            (&jobs, Type::UUID_ARRAY),
            (&results, Type::TEXT_ARRAY),
            (&usages, Type::TEXT_ARRAY),
            (&now, Type::TIMESTAMPTZ),
        ];
        let rows = self.try_call(desk, statement::COMPLETE_JOBS, &params).await?;
        let pair = |row: &Row| Ok((get::<i64>(row, 0)?, job_id(row, 1)?));
        let unwritten: HashSet<(i64, JobId)> =
            rows.iter().map(pair).collect::<Result<_, _>>().map_err(Failed::Other)?;
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            let written = |end: &EndJob| !unwritten.contains(&(request.lease.0, end.job));
            answers.push(match unwritten.is_empty() {
                true => vec![Ended::Now(How::Succeeded); request.jobs.len()],
                false => self.answer(request, |end| written(end).then_some(How::Succeeded)).await?,
            });
        }
        Ok(answers)
    }

    async fn end_one_by_one(&self, request: &EndJobs) -> Result<Vec<Ended>, StoreError> {
        let mut answers = Vec::with_capacity(request.jobs.len());
        for end in &request.jobs {
            let one = EndJobs { worker: request.worker, lease: request.lease, jobs: vec![end.clone()] };
            match self.end(Desk::Hasty, &one).await {
                Ok(answer) => answers.extend(answer),
                Err(Failed::Said(error)) if is_locked_out(&error) => answers.push(Ended::Busy),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(answers)
    }

    /// Inserts the attempts; answers which were inserted and how.
    async fn write_endings(&self, desk: Desk, request: &EndJobs) -> Result<HashMap<JobId, How>, Failed> {
        let jobs = uuids(request.jobs.iter().map(|end| end.job));
        let text = |json: Option<&Json>| json.map(|json| json.as_str().to_owned());
        let details: Vec<_> = request.jobs.iter().map(|end| end.ending.details()).collect();
        let results: Vec<Option<String>> = details.iter().map(|(_, result, _)| text(*result)).collect();
        let usages: Vec<Option<String>> = details.iter().map(|(_, _, usage)| text(*usage)).collect();
        let now = self.moment();
        let who: [Param<'_>; 3] =
            [(&request.worker.0, Type::INT4), (&request.lease.0, Type::INT8), (&jobs, Type::UUID_ARRAY)];
        let outcome: [Param<'_>; 3] =
            [(&results, Type::TEXT_ARRAY), (&usages, Type::TEXT_ARRAY), (&now, Type::TIMESTAMPTZ)];
        let hows: Vec<i16> = request.jobs.iter().map(|end| end.ending.how().code()).collect();
        let delays: Vec<i64> = request.jobs.iter().map(|end| millis(end.ending.delay())).collect();
        let errors: Vec<Option<String>> = details.iter().map(|(error, _, _)| text(*error)).collect();
        let each: [Param<'_>; 3] =
            [(&hows, Type::INT2_ARRAY), (&delays, Type::INT8_ARRAY), (&errors, Type::TEXT_ARRAY)];
        let healths: Vec<Option<i16>> = request.jobs.iter().map(|end| end.health().map(Health::code)).collect();
        let hold = |end: &EndJob| end.hold().map(millis);
        let holds: Vec<Option<i64>> = request.jobs.iter().map(hold).collect();
        let gates: [Param<'_>; 2] = [(&healths, Type::INT2_ARRAY), (&holds, Type::INT8_ARRAY)];
        let params = [who.as_slice(), &each, &outcome, &gates].concat();
        let rows = self.try_call(desk, statement::END_JOBS, &params).await?;
        rows.iter().map(|row| Ok((job_id(row, "job")?, how(row)?))).collect::<Result<_, _>>().map_err(Failed::Other)
    }

    /// How these grants ended, read with a fresh snapshot: the winner has committed by now. What came too late is written
    /// down on the way, so that a report that was written pays nothing for it.
    async fn refuse(&self, request: &EndJobs, unwritten: &[&EndJob]) -> Result<HashMap<JobId, Ended>, Failed> {
        let jobs = uuids(unwritten.iter().map(|end| end.job));
        let hows: Vec<i16> = unwritten.iter().map(|end| end.ending.how().code()).collect();
        let now = self.moment();
        let params: [Param<'_>; 5] = [
            (&request.worker.0, Type::INT4),
            (&request.lease.0, Type::INT8),
            (&jobs, Type::UUID_ARRAY),
            (&hows, Type::INT2_ARRAY),
            (&now, Type::TIMESTAMPTZ),
        ];
        let rows = self.try_call(Desk::Short, statement::REFUSE_ENDINGS, &params).await?;
        rows.iter().map(told).collect::<Result<_, _>>().map_err(Failed::Other)
    }
}

fn told(row: &Row) -> Result<(JobId, Ended), StoreError> {
    let known = get::<Option<i16>>(row, "how")?.map(|_| how(row)).transpose()?;
    let answer = match (known, get(row, "answered")?) {
        (Some(how), true) => Ended::Before(how),
        (how, _) => Ended::LeaseLost { how },
    };
    Ok((job_id(row, "job")?, answer))
}

fn reclaimed(row: &Row) -> Result<Reclaimed, StoreError> {
    let worker = get::<Option<&str>>(row, "worker")?.map(str::parse::<tenure_core::name::WorkerName>).transpose();
    Ok(Reclaimed {
        job: job_id(row, "job")?,
        lease: LeaseNo(get(row, "lease")?),
        worker: worker.map_err(|e| StoreError::Corrupt(e.to_string()))?,
        how: how(row)?,
    })
}
