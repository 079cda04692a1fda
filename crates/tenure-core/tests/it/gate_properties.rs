//! What a gate keeps over any history: no token too many, no permit lost, one probe, and no word from the past.
//!
//! Beside the gate runs a reference that is written the naive way: a bucket with fractions, a list of who is inside, and a
//! breaker that numbers its eras and gives each job the number of the era it entered in.

use std::time::Duration;

use proptest::prelude::*;
use tenure_core::gate::breaker::Phase;
use tenure_core::gate::{Admit, Breaker, Gate, GateEvent, GateRule, Health, Moved, Rate, Why};
use tenure_core::{LeaseNo, Timestamp};

const START: Timestamp = Timestamp::from_micros(1_763_197_200_000_000);

#[derive(Debug, Clone)]
enum Step {
    Wait(u64),
    Claim(u32),
    /// The n-th of those inside leaves.
    End(usize, Option<Health>),
    Hold(usize, u64),
    Trip(u64),
    Reset,
    Pause(u64),
}

fn any_rule() -> impl Strategy<Value = GateRule> {
    let rate = (1..200_u32, prop::sample::select(vec![1_u64, 7, 100, 1_000, 60_000]), 1..20_u32, 1..4_u32).prop_map(
        |(count, period, burst, cost)| Rate {
            count,
            period: Duration::from_millis(period),
            burst: burst.max(cost),
            cost,
        },
    );
    let breaker = (1..4_u32, 1..2_000_u64)
        .prop_map(|(failures, cooldown)| Breaker { failures, cooldown: Duration::from_millis(cooldown) });
    (prop::option::of(rate), prop::option::of(1..5_u32), prop::option::of(breaker))
        .prop_map(|(rate, concurrency, breaker)| GateRule { rate, concurrency, breaker, weight: 1 })
}

fn any_step() -> impl Strategy<Value = Step> {
    let health = prop_oneof![Just(None), Just(Some(Health::Healthy)), Just(Some(Health::Unhealthy))];
    prop_oneof![
        4 => (0..3_000_000_u64).prop_map(Step::Wait),
        3 => (0..2_000_u64).prop_map(Step::Wait),
        8 => (1..30_u32).prop_map(Step::Claim),
        8 => (any::<usize>(), health).prop_map(|(n, health)| Step::End(n, health)),
        1 => (any::<usize>(), 0..1_000_000_u64).prop_map(|(n, hold)| Step::Hold(n, hold)),
        1 => (0..1_000_000_u64).prop_map(Step::Trip),
        1 => Just(Step::Reset),
        1 => (0..1_000_000_u64).prop_map(Step::Pause),
    ]
}

/// The naive gate.
struct Naive {
    rule: GateRule,
    now: Timestamp,
    tokens: f64,
    /// What the gate may hold less than this: it counts whole microseconds and rounds each time against the spender.
    rounded: f64,
    inside: Vec<(LeaseNo, u64)>,
    era: u64,
    streak: u32,
    open_until: Option<Timestamp>,
    probing: Option<LeaseNo>,
    silent_until: Timestamp,
}

impl Naive {
    fn new(rule: &GateRule) -> Self {
        let tokens = rule.rate.map_or(f64::INFINITY, |rate| f64::from(rate.burst));
        Self {
            rule: rule.clone(),
            now: START,
            tokens,
            rounded: 0.0,
            inside: Vec::new(),
            era: 0,
            streak: 0,
            open_until: None,
            probing: None,
            silent_until: Timestamp::EPOCH,
        }
    }

    fn wait(&mut self, micros: u64) {
        self.now = self.now.plus(Duration::from_micros(micros));
        if let Some(rate) = self.rule.rate {
            let gained = micros as f64 * f64::from(rate.count) / rate.period.as_micros() as f64;
            self.tokens = (self.tokens + gained).min(f64::from(rate.burst));
        }
    }

    /// The gate spends once more; one that is full has forgotten its rounding.
    fn round(&mut self, is_full: bool) {
        let microsecond = self.rule.rate.map_or(0.0, |rate| f64::from(rate.count) / rate.period.as_micros() as f64);
        self.rounded = if is_full { microsecond } else { self.rounded + microsecond };
    }

    fn is_half_open(&self) -> bool {
        self.rule.breaker.is_some() && self.open_until.is_some_and(|until| until <= self.now)
    }

    /// Whether one more job may pass, and if so lets it.
    fn pass(&mut self, lease: LeaseNo) -> bool {
        let open = self.open_until.is_some_and(|until| until > self.now);
        let half = self.is_half_open();
        let full = self.rule.concurrency.is_some_and(|limit| self.inside.len() >= limit as usize);
        let cost = self.rule.rate.map_or(0.0, |rate| f64::from(rate.cost));
        if self.silent_until > self.now || open || half && self.probing.is_some() || full || self.tokens + 1e-6 < cost {
            return false;
        }
        self.tokens -= cost;
        if half {
            self.probing = Some(lease);
        }
        self.inside.push((lease, self.era));
        true
    }

    fn hear(&mut self, lease: LeaseNo, era: u64, health: Option<Health>) {
        let is_probe = self.probing == Some(lease);
        if is_probe {
            self.probing = None;
        }
        let opened = self.open_until.is_some() && self.rule.breaker.is_some();
        match (health, self.rule.breaker) {
            (Some(Health::Healthy), _) if is_probe => self.close(),
            (Some(Health::Unhealthy), Some(breaker)) if is_probe => {
                self.streak += 1;
                self.open(self.now.plus(breaker.cooldown));
            }
            _ if is_probe || opened || era != self.era => {}
            (Some(Health::Healthy), _) => self.streak = 0,
            (Some(Health::Unhealthy), breaker) => {
                self.streak += 1;
                if let Some(breaker) = breaker.filter(|breaker| self.streak >= breaker.failures) {
                    self.open(self.now.plus(breaker.cooldown));
                }
            }
            (None, _) => {}
        }
    }

    fn open(&mut self, until: Timestamp) {
        (self.open_until, self.probing) = (Some(until), None);
        self.era += 1;
    }

    fn close(&mut self) {
        (self.open_until, self.probing, self.streak) = (None, None, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_gate_does_what_its_naive_reference_does(
        rule in any_rule(), steps in prop::collection::vec(any_step(), 1..80),
    ) {
        prop_assert_eq!(rule.check(), Ok(()));
        let (mut gate, mut naive, mut lease) = (Gate::default(), Naive::new(&rule), 0);
        for step in steps {
            match step {
                Step::Wait(micros) => naive.wait(micros),
                Step::Claim(wanted) => {
                    lease += 1;
                    let jobs = match gate.admit(&rule, naive.now) {
                        Admit::Open(most) => wanted.min(most),
                        Admit::Closed { until, .. } => {
                            prop_assert!(until.is_none_or(|until| until > naive.now), "it is closed until {:?}", until);
                            0
                        }
                    };
                    if jobs > 0 {
                        naive.round(gate.full_at <= naive.now);
                        gate.take(&rule, jobs, LeaseNo(lease), naive.now);
                    }
                    let passed = (0..jobs).take_while(|_| naive.pass(LeaseNo(lease))).count();
                    prop_assert_eq!(passed, jobs as usize, "more passed than the reference allows: {:?}", gate);
                    // Nor fewer, but for what was rounded.
                    let cost = naive.rule.rate.map_or(0.0, |rate| f64::from(rate.cost));
                    if jobs < wanted && naive.tokens > cost + naive.rounded + 1e-6 {
                        prop_assert!(!naive.pass(LeaseNo(lease)), "the reference lets one more pass: {:?}", gate);
                    }
                }
                Step::End(..) | Step::Hold(..) if naive.inside.is_empty() => {}
                Step::End(n, health) => {
                    let (ended, era) = naive.inside.swap_remove(n % naive.inside.len());
                    let before = naive.open_until;
                    naive.hear(ended, era, health);
                    let event = GateEvent { lease: ended, at: naive.now, health, hold_until: None };
                    let moved = match (before, naive.open_until) {
                        (before, Some(now)) if before != Some(now) => Some(Moved::Tripped),
                        (Some(_), None) => Some(Moved::Healed),
                        _ => None,
                    };
                    let told = gate.fold(&rule, &event);
                    // A probe that fails in the very moment of the cooldown's end opens until the same moment again.
                    prop_assert!(told == moved || told == Some(Moved::Tripped) && before == naive.open_until);
                }
                Step::Hold(n, hold) => {
                    let (ended, era) = naive.inside.swap_remove(n % naive.inside.len());
                    let until = naive.now.plus(Duration::from_micros(hold));
                    naive.hear(ended, era, None);
                    naive.silent_until = naive.silent_until.max(until);
                    let event = GateEvent { lease: ended, at: naive.now, health: None, hold_until: Some(until) };
                    gate.fold(&rule, &event);
                }
                Step::Trip(micros) => {
                    let until = naive.now.plus(Duration::from_micros(micros));
                    naive.open(until);
                    gate.trip(until);
                }
                Step::Reset => {
                    naive.close();
                    naive.era += 1;
                    naive.tokens = naive.rule.rate.map_or(f64::INFINITY, |rate| f64::from(rate.burst));
                    gate.reset(naive.now);
                }
                Step::Pause(micros) => {
                    let until = naive.now.plus(Duration::from_micros(micros));
                    gate.paused_until = Some(until);
                    naive.silent_until = naive.silent_until.max(until);
                    gate.held_until = gate.held_until.max(Some(naive.silent_until));
                }
            }
            prop_assert_eq!(gate.in_use as usize, naive.inside.len(), "G1: permits are jobs inside");
            prop_assert!(rule.concurrency.is_none_or(|limit| gate.in_use <= limit), "too many are inside");
            prop_assert_eq!(gate.streak, naive.streak);
            let half_open = matches!(gate.phase(rule.breaker.as_ref(), naive.now), Phase::HalfOpen { .. });
            prop_assert_eq!(half_open, naive.is_half_open());
            prop_assert_eq!(gate.probe, naive.probing);
        }
    }

    #[test]
    fn a_reservation_never_lets_tokens_pass_before_their_time(
        waits in prop::collection::vec((0..200_000_u64, 1..8_u32), 1..60),
    ) {
        let rate = Rate { count: 50, period: Duration::from_secs(1), burst: 5, cost: 1 };
        let rule = GateRule { rate: Some(rate), ..GateRule::default() };
        let (mut gate, mut now, mut spent) = (Gate::default(), START, Vec::<(Timestamp, u32)>::new());
        for (wait, tokens) in waits {
            now = now.plus(Duration::from_micros(wait));
            let Ok(at) = gate.reserve(&rule, tokens, now) else {
                prop_assert!(tokens > rate.burst, "{tokens} are refused");
                continue;
            };
            prop_assert!(tokens <= rate.burst && at >= now);
            spent.push((at, tokens));
        }
        for (n, (from, _)) in spent.iter().enumerate() {
            let mut sum = 0;
            for (to, tokens) in &spent[n..] {
                sum += tokens;
                let stretch = to.since(*from).as_micros() as f64 / 1e6;
                prop_assert!(f64::from(sum) <= 5.0 + 50.0 * stretch + 1e-3, "G2: {sum} in {stretch} s");
            }
        }
    }

    #[test]
    fn a_bucket_that_comes_under_another_rule_owes_nothing_and_gains_nothing(
        before in any_rule(), after in any_rule(), owed in 0..40_u32, wait in 0..3_000_000_u64,
    ) {
        let mut gate = Gate::default();
        for _ in 0..owed {
            if gate.reserve(&before, 1 + owed % 7, START).is_err() {
                break;
            }
        }
        let (now, spent_until) = (START.plus(Duration::from_micros(wait)), gate.full_at);
        gate.come_under(&after, now);
        prop_assert!(gate.full_at <= spent_until, "it is never full later than before");
        let Some(rate) = after.rate else { return Ok(()) };
        prop_assert!(rate.tokens(gate.full_at, now) <= rate.burst);
        prop_assert!(gate.full_at <= now || gate.full_at <= rate.refilled_at(now));
        // The first job passes after the time in which its tokens come, at the latest.
        let one = Rate { burst: rate.cost, ..rate };
        prop_assert!(rate.ready_at(gate.full_at, rate.cost) <= one.refilled_at(now).plus(Duration::from_micros(2)));
        let again = gate.clone();
        gate.come_under(&after, now);
        prop_assert_eq!(gate, again, "the same rule changes nothing");
    }
}

#[test]
fn a_late_word_from_before_the_trip_neither_heals_nor_frees_the_probe() {
    let rule =
        GateRule { breaker: Some(Breaker { failures: 1, cooldown: Duration::from_secs(300) }), ..GateRule::default() };
    let mut gate = Gate::default();
    gate.take(&rule, 2, LeaseNo(1), START);
    let event = |lease, health| GateEvent { lease: LeaseNo(lease), at: START, health: Some(health), hold_until: None };
    assert_eq!(gate.fold(&rule, &event(1, Health::Unhealthy)), Some(Moved::Tripped));
    let later = START.plus(Duration::from_secs(300));
    assert_eq!(gate.admit(&rule, later), Admit::Open(1));
    gate.take(&rule, 1, LeaseNo(2), later);
    assert_eq!(gate.admit(&rule, later), Admit::Closed { why: Why::Probing, until: None });
    assert_eq!(gate.fold(&rule, &event(1, Health::Healthy)), None);
    assert_eq!(gate.admit(&rule, later), Admit::Closed { why: Why::Probing, until: None });
    assert_eq!(gate.fold(&rule, &event(2, Health::Healthy)), Some(Moved::Healed));
    assert_eq!(gate.admit(&rule, later), Admit::Open(u32::MAX));
}
