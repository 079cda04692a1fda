//! Schedules, where a story is not enough: requests that no honest worker makes, and two at once.

use std::time::Duration;

use tenure_core::cron::Timing;
use tenure_core::journal::JournalEvent;
use tenure_core::name::{KindName, ScheduleName, TenantName};
use tenure_core::{JobId, Json, Timestamp};
use tenure_store::StoreError;
use tenure_store::operate::Word;
use tenure_store::record::{JobFilter, Sight};
use tenure_store::schedule::{
    FIRES_KEPT, FireRecord, FireSchedule, Fired, GRACE_MAX, PauseSchedule, ScheduleRecord, ScheduleSet, SetSchedule,
    Template,
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
    let request = tenure_store::schedule::RemoveSchedule {
        tenant: TenantName::default(),
        name: name(),
        word: word("not needed"),
    };
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
