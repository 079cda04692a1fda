//! Schedules, where a story is not enough: requests that no honest worker makes, and two at once.

use std::time::Duration;

use tenure_core::cron::Timing;
use tenure_core::journal::JournalEvent;
use tenure_core::name::{KindName, QueueName, ScheduleName, TenantName};
use tenure_core::{JobId, Json, NewJob, Timestamp};
use tenure_store::StoreError;
use tenure_store::operate::{Quota, SetQueue, Word};
use tenure_store::record::{JobFilter, Sight};
use tenure_store::schedule::{
    FIRES_KEPT, FireRecord, FireSchedule, Fired, GRACE_MAX, PauseSchedule, RemoveSchedule, SCHEDULES_MAX,
    ScheduleRecord, ScheduleSet, SetSchedule, Template,
};

use super::situation::{ROUNDS, both};
use crate::fixture::Fixture;

const SECOND: Duration = Duration::from_secs(1);

fn name() -> ScheduleName {
    ScheduleName::new("s").expect("a name")
}

/// A schedule of each second.
fn each_second() -> SetSchedule {
    let timing = Timing::new("* * * * * *".parse().expect("a cron"));
    let template = Template::new(KindName::new("noop").expect("a name"), Json::null());
    SetSchedule { tenant: TenantName::default(), name: name(), timing, template, word: Word::default() }
}

async fn set(t: &Fixture, request: SetSchedule) -> ScheduleSet {
    t.store.set_schedule(request).await.expect("set")
}

async fn shown(t: &Fixture) -> (ScheduleRecord, Vec<FireRecord>) {
    t.store.show_schedule(&TenantName::default(), &name()).await.expect("show")
}

async fn pause(t: &Fixture, paused: bool, word: Word) {
    let request = PauseSchedule { tenant: TenantName::default(), name: name(), paused, word };
    t.store.pause_schedule(request).await.expect("pause");
}

async fn jobs(t: &Fixture) -> Vec<JobId> {
    let filter = JobFilter { sight: Sight::All, limit: 1_000, ..JobFilter::default() };
    t.store.list_jobs(&filter).await.expect("list").iter().map(|job| job.id).collect()
}

/// A request for the schedule as it is now, whatever it says of the time.
async fn ask(t: &Fixture, fire_at: Option<Timestamp>) -> (JobId, Fired) {
    let (record, _) = shown(t).await;
    let request = FireSchedule {
        schedule: record.id,
        version: record.version,
        fire_at,
        job: t.new_id(),
        look_at: t.clock.now().plus(SECOND),
    };
    let job = request.job;
    (job, t.store.fire_schedule(request).await.expect("fire"))
}

/// S1, the second lock: the version is right, and the fire has its job all the same.
pub async fn a_fire_time_has_one_job_whatever_is_asked(t: Fixture) {
    set(&t, each_second()).await;
    t.advance(SECOND);
    let now = t.clock.now();
    let (first, fired) = ask(&t, Some(now)).await;
    assert_eq!(fired, Fired::Stored(first));
    for _ in 0..3 {
        assert_eq!(ask(&t, Some(now)).await.1, Fired::Lost);
    }
    assert_eq!(jobs(&t).await, [first]);
    let fires: Vec<_> = shown(&t).await.1.iter().map(|fire| (fire.fire_at, fire.job)).collect();
    assert_eq!(fires, [(now, first)]);
}

/// By the store's clock, whatever the clock of a process says.
pub async fn a_schedule_is_not_fired_before_its_time(t: Fixture) {
    set(&t, each_second()).await;
    let early = t.clock.now().plus(SECOND);
    assert_eq!(ask(&t, Some(early)).await.1, Fired::Lost);
    assert!(jobs(&t).await.is_empty());
    t.advance(SECOND);
    assert!(matches!(ask(&t, Some(early)).await.1, Fired::Stored(_)));
}

/// Also by one who read it after it was paused.
pub async fn a_paused_schedule_cannot_be_fired_by_hand(t: Fixture) {
    set(&t, each_second()).await;
    t.advance(SECOND);
    pause(&t, true, Word::default()).await;
    assert_eq!(ask(&t, Some(t.clock.now())).await.1, Fired::Lost);
    assert!(jobs(&t).await.is_empty());
}

/// A fire whose job cannot be stored has not been: the version, the row and the job are one transaction.
pub async fn a_fire_that_cannot_be_stored_leaves_nothing(t: Fixture) {
    set(&t, each_second()).await;
    t.advance(SECOND);
    let (before, now) = (shown(&t).await, t.clock.now());
    let (schedule, version) = (before.0.id, before.0.version);
    let taken = t.enqueue().await;
    let of_1970 = JobId::from_parts(Timestamp::EPOCH, [7; 10]);
    for job in [taken, of_1970] {
        let request = FireSchedule { schedule, version, fire_at: Some(now), job, look_at: now.plus(SECOND) };
        let refused = t.store.fire_schedule(request).await;
        assert!(matches!(refused, Err(StoreError::Invalid(ref why)) if why.field == "id"), "{refused:?}");
    }
    assert_eq!(shown(&t).await, before);
    assert_eq!(jobs(&t).await, [taken]);
}

/// However many processes look at the same time, each second has one job.
pub async fn of_two_fires_at_once_one_stores_a_job(t: Fixture) {
    set(&t, each_second()).await;
    for round in 1..=ROUNDS {
        t.advance(SECOND);
        let due = t.store.due_schedules(10).await.expect("due").due;
        let (one, other) = (due[0].decide(t.new_id()), due[0].decide(t.new_id()));
        let (first, second) = (t.store.clone(), t.store.clone());
        let fired = both(async move { first.fire_schedule(one).await.expect("fire") }, async move {
            second.fire_schedule(other).await.expect("fire")
        })
        .await;
        assert!(
            matches!(fired, (Fired::Stored(_), Fired::Lost) | (Fired::Lost, Fired::Stored(_))),
            "round {round}: {fired:?}"
        );
    }
    assert_eq!(jobs(&t).await.len(), ROUNDS);
}

/// A schedule of each second, of a tenant of its own choice.
async fn set_of(t: &Fixture, tenant: &str, name: &str) {
    let (tenant, name) = (tenant.parse().expect("a name"), name.parse().expect("a name"));
    set(t, SetSchedule { tenant, name, ..each_second() }).await;
}

/// The due schedules by name, one page of them.
async fn due(t: &Fixture, limit: u32) -> Vec<ScheduleRecord> {
    t.store.due_schedules(limit).await.expect("due").due
}

/// A tenant with many due schedules delays no other tenant by more than its turn.
pub async fn tenants_take_turns_among_due_schedules(t: Fixture) {
    for n in 10..40 {
        set_of(&t, "noisy", &format!("n{n}")).await;
    }
    t.advance(SECOND);
    for name in ["q1", "q2"] {
        set_of(&t, "quiet", name).await;
    }
    let names = async |limit| due(&t, limit).await.iter().map(|due| due.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(6).await, ["n10", "q1", "n11", "q2", "n12", "n13"]);
    assert_eq!(names(1_000).await.len(), 32, "every due schedule has its turn");
    // The longest due of each tenant goes first, also after others of this tenant have fired.
    let first: Vec<_> = due(&t, 2).await.iter().map(|read| read.decide(t.new_id())).collect();
    t.store.fire_schedules(first).await.expect("fire");
    assert_eq!(names(2).await, ["n11", "q2"]);
}

/// Stored, lost, passed over: each fire of a batch has its own answer, also when the batch is sent again.
pub async fn a_batch_of_fires_is_answered_one_by_one(t: Fixture) {
    for name in ["a", "b", "c", "d"] {
        set_of(&t, "default", name).await;
    }
    t.advance(SECOND);
    let now = t.clock.now();
    let mut batch: Vec<_> = due(&t, 10).await.iter().map(|read| read.decide(t.new_id())).collect();
    batch[1].version -= 1;
    batch[2].fire_at = None;
    let jobs_asked: Vec<_> = batch.iter().map(|fire| fire.job).collect();
    let expected = [Fired::Stored(jobs_asked[0]), Fired::Lost, Fired::Passed, Fired::Stored(jobs_asked[3])];
    let fired = async |batch: &[FireSchedule]| {
        let answers = t.store.fire_schedules(batch.to_vec()).await.expect("fire");
        answers.into_iter().collect::<Result<Vec<_>, _>>().expect("no fire is refused")
    };
    assert_eq!(fired(&batch).await, expected);
    // Sent again after a lost reply: what was stored is answered as before, and nothing happens again.
    let again = [Fired::Stored(jobs_asked[0]), Fired::Lost, Fired::Lost, Fired::Stored(jobs_asked[3])];
    assert_eq!(fired(&batch).await, again);
    assert_eq!(jobs(&t).await.len(), 2);
    assert_eq!(fired(&[]).await, []);
    for (name, fires) in [("a", 1), ("b", 0), ("c", 0), ("d", 1)] {
        let shown = t.store.show_schedule(&TenantName::default(), &name.parse().expect("a name")).await.expect("show");
        let times: Vec<_> = shown.1.iter().map(|fire| fire.fire_at).collect();
        assert_eq!(times, vec![now; fires], "{name}");
    }
    let twice = t.store.fire_schedules(vec![batch[1].clone(), batch[1].clone()]).await;
    assert!(matches!(twice, Err(StoreError::Invalid(ref why)) if why.field == "fires"), "{twice:?}");
}

/// A full queue or a refused id of one schedule costs the other schedules of the batch nothing.
pub async fn a_refused_fire_leaves_its_batch_alone(t: Fixture) {
    let full: QueueName = "full".parse().expect("a name");
    let quota = Some(Quota::Pending(1));
    t.store.set_queue(SetQueue { quota, ..SetQueue::new(full.clone(), SECOND * 60) }).await.expect("quota");
    let taken = NewJob { queue: full.clone(), ..t.new_job() };
    t.store.enqueue_jobs(vec![taken.clone()]).await.expect("enqueue");
    for name in ["a", "b", "c", "d"] {
        let mut request = SetSchedule { name: name.parse().expect("a name"), ..each_second() };
        if name == "b" {
            request.template.queue = full.clone();
        }
        set(&t, request).await;
    }
    t.advance(SECOND);
    let mut batch: Vec<_> = due(&t, 10).await.iter().map(|read| read.decide(t.new_id())).collect();
    batch[2].job = taken.id;
    let answers = t.store.fire_schedules(batch.clone()).await.expect("fire");
    assert!(
        matches!(
            &answers[..],
            [Ok(Fired::Stored(_)), Err(StoreError::Full(_)), Err(StoreError::Invalid(why)), Ok(Fired::Stored(_))]
                if why.field == "id"
        ),
        "{answers:?}"
    );
    let mut stored = jobs(&t).await;
    stored.sort_unstable();
    let mut expected = vec![taken.id, batch[0].job, batch[3].job];
    expected.sort_unstable();
    assert_eq!(stored, expected);
    // The refused ones are as they were, and due.
    let left: Vec<_> = due(&t, 10).await.into_iter().map(|read| (read.name.to_string(), read.version)).collect();
    assert_eq!(left, [("b".to_owned(), batch[1].version), ("c".to_owned(), batch[2].version)]);
}

/// Two processes that read the same page: together they store each fire once, and neither waits for the other for ever.
pub async fn of_two_batches_of_fires_at_once_each_fire_is_stored_once(t: Fixture) {
    for n in 0..20 {
        set_of(&t, "default", &format!("s{n}")).await;
    }
    for round in 1..=ROUNDS {
        t.advance(SECOND);
        let due = due(&t, 100).await;
        let one: Vec<_> = due.iter().map(|read| read.decide(t.new_id())).collect();
        let other: Vec<_> = due.iter().rev().map(|read| read.decide(t.new_id())).collect();
        let (first, second) = (t.store.clone(), t.store.clone());
        let (fired, others) = both(async move { first.fire_schedules(one).await.expect("fire") }, async move {
            second.fire_schedules(other).await.expect("fire")
        })
        .await;
        for (read, answers) in due.iter().zip(fired.iter().zip(others.iter().rev())) {
            assert!(
                matches!(answers, (Ok(Fired::Stored(_)), Ok(Fired::Lost)) | (Ok(Fired::Lost), Ok(Fired::Stored(_)))),
                "round {round}, {}: {answers:?}",
                read.name
            );
        }
    }
    assert_eq!(jobs(&t).await.len(), 20 * ROUNDS);
}

/// Also where two processes make the last one at once; and other tenants are not concerned.
pub async fn a_tenant_has_a_thousand_schedules_at_most(t: Fixture) {
    for n in 1..SCHEDULES_MAX {
        set_of(&t, "default", &format!("s{n}")).await;
    }
    let (first, second) = (t.store.clone(), t.store.clone());
    let named = |name: &str| SetSchedule { name: name.parse().expect("a name"), ..each_second() };
    let (one, other) = (named("one"), named("other"));
    let answers = both(async move { first.set_schedule(one).await }, async move { second.set_schedule(other).await });
    let answers = answers.await;
    assert!(
        matches!(
            &answers,
            (Ok(ScheduleSet::Created), Err(StoreError::Limit(_)))
                | (Err(StoreError::Limit(_)), Ok(ScheduleSet::Created))
        ),
        "{answers:?}"
    );
    match t.store.set_schedule(named("more")).await {
        Err(StoreError::Limit(text)) => assert_eq!(
            text,
            "schedules of tenant `default`: 1000 is the limit; remove one with `tenure schedules remove NAME`"
        ),
        other => panic!("{other:?}"),
    }
    // What is there can be changed, another tenant has room, and one removed makes room.
    let mut changed = named("s1");
    changed.template.payload = Json::from_store("7".to_owned());
    assert_eq!(set(&t, changed).await, ScheduleSet::Changed);
    set_of(&t, "acme", "one").await;
    let request =
        RemoveSchedule { tenant: TenantName::default(), name: "s1".parse().expect("a name"), word: Word::default() };
    t.store.remove_schedule(request).await.expect("remove");
    set_of(&t, "default", "more").await;
}

/// The newest fires are the history; the others go as new ones come.
pub async fn the_newest_fires_of_a_schedule_are_kept(t: Fixture) {
    set(&t, each_second()).await;
    let more = 5;
    for _ in 0..FIRES_KEPT + more {
        t.advance(SECOND);
        assert!(matches!(ask(&t, Some(t.clock.now())).await.1, Fired::Stored(_)));
    }
    let (record, fires) = shown(&t).await;
    assert_eq!(fires.len(), FIRES_KEPT as usize);
    assert_eq!((fires[0].fire_at, record.last), (t.clock.now(), t.clock.now()));
    assert!(fires.windows(2).all(|pair| pair[0].fire_at == pair[1].fire_at.plus(SECOND)));
    assert_eq!(jobs(&t).await.len(), (FIRES_KEPT + more) as usize, "jobs stay");
}

/// A worker is told how long it may sleep.
pub async fn the_next_look_at_a_schedule_is_told(t: Fixture) {
    assert_eq!(t.store.due_schedules(10).await.expect("due").next_in, None);
    set(&t, each_second()).await;
    let found = t.store.due_schedules(10).await.expect("due");
    assert_eq!((found.due.len(), found.next_in), (1, None));
    t.store.fire_schedule(found.due[0].decide(t.new_id())).await.expect("pass");
    let found = t.store.due_schedules(10).await.expect("due");
    assert_eq!((found.due.len(), found.next_in), (0, Some(SECOND)));
    pause(&t, true, Word::default()).await;
    assert_eq!(t.store.due_schedules(10).await.expect("due").next_in, None);
}

/// Who did what to a schedule, and why; what changes nothing is not written down.
pub async fn what_happens_to_a_schedule_is_written_down(t: Fixture) {
    let word = |reason: &str| Word { actor: Some("ann".into()), reason: Some(reason.into()) };
    for _ in 0..2 {
        set(&t, SetSchedule { word: word("new"), ..each_second() }).await;
    }
    for paused in [true, true, false, false] {
        pause(&t, paused, word("upgrade")).await;
    }
    let request = RemoveSchedule { tenant: TenantName::default(), name: name(), word: word("not needed") };
    t.store.remove_schedule(request).await.expect("remove");
    let rows = t.journal().await;
    let said: Vec<_> = rows.iter().map(|row| (row.event, row.actor.as_deref(), row.reason.as_deref())).collect();
    let ann = Some("ann");
    assert_eq!(
        said,
        [
            (JournalEvent::ScheduleSet, ann, Some("new")),
            (JournalEvent::SchedulePaused, ann, Some("upgrade")),
            (JournalEvent::ScheduleResumed, ann, Some("upgrade")),
            (JournalEvent::ScheduleRemoved, ann, Some("not needed")),
        ]
    );
}

/// Each by its name, and nothing is stored.
pub async fn what_no_schedule_can_ask_for_is_refused(t: Fixture) {
    type Change = fn(&mut SetSchedule);
    let bad: [(&str, Change); 4] = [
        ("max_attempts", |set| set.template.rules.max_attempts = 0),
        ("payload", |set| set.template.payload = Json::from_store(format!("\"{}\"", "x".repeat(1 << 20)))),
        ("grace", |set| set.timing.grace = GRACE_MAX + SECOND),
        ("reason", |set| set.word.reason = Some(String::new())),
    ];
    for (field, change) in bad {
        let mut request = each_second();
        change(&mut request);
        match t.store.set_schedule(request).await {
            Err(StoreError::Invalid(invalid)) => assert_eq!(invalid.field, field),
            other => panic!("{field}: {other:?}"),
        }
    }
    let shown = t.store.show_schedule(&TenantName::default(), &name()).await;
    assert!(matches!(shown, Err(StoreError::NotFound(_))), "{shown:?}");
}
