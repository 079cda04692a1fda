//! The handlers of a run. Each run of one is in the books from its first poll to its last, whoever ends it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tenure_sqlite::rusqlite::params;
use tenure_store::StoreError;
use tenure_worker::{Attempt, Builder, Completed, Ctx, Fail, HandleOptions, State, Stop};
use tokio::time::sleep;

use super::breakage::Breakage;
use super::jobs::{Fan, Limited, Pay, Poison, Work};
use super::net::{Twice, Verb, Wire};
use super::node::Node;
use super::producer;
use super::world::World;

/// Where handlers run.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) world: Arc<World>,
    pub(crate) node: Node,
    pub(crate) wire: Wire,
}

/// Gives a worker all the handlers.
pub(crate) fn handle_all(worker: Builder<Stage>) -> Builder<Stage> {
    // Every other way of saying the same is tried as well.
    let short = HandleOptions::new().timeout(super::jobs::LIMIT);
    worker.handle(work).handle(pay).handle_with(limited, short).handle(poison).handle(fan)
}

async fn work(_: Work, State(stage): State<Stage>, ctx: Ctx) -> Result<(), Fail> {
    let script = Script::draw(&stage.world);
    watched(&stage, &ctx, script.act(&ctx)).await
}

async fn limited(_: Limited, State(stage): State<Stage>, ctx: Ctx) -> Result<(), Fail> {
    let script = Script::draw(&stage.world);
    let hangs = stage.world.draw(|rng| rng.chance(300));
    watched(&stage, &ctx, async {
        if hangs {
            return std::future::pending().await;
        }
        script.act(&ctx).await
    })
    .await
}

async fn poison(_: Poison, State(stage): State<Stage>, ctx: Ctx) -> Result<(), Fail> {
    watched(&stage, &ctx, async {
        sleep(Duration::from_millis(50)).await;
        stage.world.count("poison");
        stage.world.trace(stage.node.name(), format_args!("goes down with it"));
        stage.node.destroy();
        std::future::pending().await
    })
    .await
}

async fn fan(job: Fan, State(stage): State<Stage>, ctx: Ctx) -> Result<(), Fail> {
    let script = Script::draw(&stage.world);
    watched(&stage, &ctx, async {
        // The same id in every attempt: however often this runs, there is one child.
        let child = producer::child_of(&stage.world, job.n);
        let stored = ctx.client().enqueue(Work { n: job.n }).id(child).await?;
        stage.world.ledger.acknowledged(stored.job());
        script.act(&ctx).await
    })
    .await
}

async fn pay(_: Pay, State(stage): State<Stage>, ctx: Ctx, attempt: Attempt) -> Result<Completed, Fail> {
    let script = Script::draw(&stage.world);
    watched(&stage, &ctx, async {
        script.act(&ctx).await?;
        loop {
            match transact(&stage, attempt.clone()).await {
                Ok(done) => return done,
                // Nobody knows whether it was committed: asked again, the store does.
                Err(_) if stage.world.draw(|rng| rng.chance(700)) => stage.world.count("transaction_repeated"),
                Err(error) => return Err(error.into()),
            }
        }
    })
    .await
}

/// Writes the row and completes the job.
async fn transact(stage: &Stage, attempt: Attempt) -> Result<Result<Completed, Fail>, StoreError> {
    let said = format!("{} L{}", stage.world.ledger.name_of(attempt.job_id()), attempt.fence());
    let apart = stage.world.is_broken(Breakage::EffectsApart);
    let tell = |_: &World, done: &Result<Completed, Fail>| match done {
        Ok(_) => "committed".to_owned(),
        Err(fail) => format!("!{fail}"),
    };
    let done = stage
        .wire
        .send(Verb("transaction", Twice::Never), said, tell, move |site| {
            let attempt = attempt.clone();
            Box::pin(async move {
                if apart {
                    let early = attempt.clone();
                    site.store.transaction(move |tx| insert(tx, &early)).await?;
                }
                let done = site.store.transaction(move |tx| {
                    if !apart {
                        insert(tx, &attempt)?;
                    }
                    attempt.complete_in(tx)
                });
                let done = done.await;
                site.world.add("completed_in_transaction", usize::from(done.is_ok()));
                Ok(done)
            })
        })
        .await?;
    Ok(done)
}

fn insert(tx: &tenure_sqlite::Transaction<'_, '_>, attempt: &Attempt) -> Result<(), StoreError> {
    let (job, fence) = (attempt.job_id().to_string(), attempt.fence().0);
    tx.connection()
        .execute("insert into effect (job, fence) values (?1, ?2)", params![job, fence])
        .map(drop)
        .map_err(StoreError::unavailable)
}

/// What one run of a handler does.
struct Script {
    steps: Vec<Duration>,
    /// Looks between two steps whether it should stop.
    is_polite: bool,
    ending: Ending,
}

#[derive(Clone, Copy)]
enum Ending {
    Done,
    Transient,
    Permanent,
    Dead,
    Snooze,
    Panic,
}

impl Script {
    fn draw(world: &World) -> Self {
        use Ending::{Dead, Done, Panic, Permanent, Snooze, Transient};
        let ttl_ms = world.plan.lease_ttl.as_millis() as u64;
        let is_healed = world.is_healed();
        world.draw(|rng| {
            let longest = match rng.index(10) {
                _ if is_healed => 300,
                0..=5 => 500,
                6..=8 => ttl_ms,
                _ => ttl_ms * 5 / 2,
            };
            let steps = (0..rng.between(1, 3)).map(|_| rng.millis(0, longest / 2)).collect();
            let ending = match is_healed {
                true => rng.pick(&[Done, Done, Done, Done, Transient, Permanent]),
                false => rng
                    .pick(&[Done, Done, Done, Done, Done, Done, Transient, Transient, Permanent, Dead, Snooze, Panic]),
            };
            Self { steps, is_polite: rng.chance(700), ending }
        })
    }

    async fn act(self, ctx: &Ctx) -> Result<(), Fail> {
        for step in self.steps {
            sleep(step).await;
            if self.is_polite {
                ctx.check()?;
            }
        }
        match self.ending {
            Ending::Done => Ok(()),
            Ending::Transient => Err(Fail::transient("not now")),
            Ending::Permanent => Err(Fail::permanent("never")),
            Ending::Dead => Err(Fail::dead("for a person")),
            Ending::Snooze => Err(Fail::snooze(Duration::from_secs(2))),
            // Without the hook: a panic here is no news to anybody.
            Ending::Panic => std::panic::resume_unwind(Box::new("a handler of the simulation")),
        }
    }
}

/// Runs a handler's body under the eyes of the ledger.
async fn watched<T>(stage: &Stage, ctx: &Ctx, body: impl Future<Output = T>) -> T {
    let mut mark = Mark::begin(stage, ctx);
    let mut body = pin!(body);
    let answer = std::future::poll_fn(|cx| {
        mark.step();
        body.as_mut().poll(cx)
    });
    let answer = answer.await;
    mark.is_answered = true;
    answer
}

/// A run in the books; it is over when this is dropped, by whomever.
struct Mark<'s> {
    stage: &'s Stage,
    ctx: &'s Ctx,
    is_answered: bool,
}

impl<'s> Mark<'s> {
    fn begin(stage: &'s Stage, ctx: &'s Ctx) -> Self {
        let Stage { world, node, .. } = stage;
        let name = world.ledger.name_of(ctx.job_id());
        world.trace(node.name(), format_args!("start {name} L{} attempt {}", ctx.fence(), ctx.attempt()));
        world.ledger.started(ctx.job_id(), ctx.fence(), node, &world.clock);
        Self { stage, ctx, is_answered: false }
    }

    fn step(&self) {
        let Stage { world, node, .. } = self.stage;
        world.ledger.stepped(self.ctx.job_id(), self.ctx.fence(), node, &world.clock);
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        let Stage { world, node, .. } = self.stage;
        let (job, lease) = (self.ctx.job_id(), self.ctx.fence());
        let why = match self.ctx.stop() {
            _ if !node.is_up() => "with its machine",
            Some(Stop::LeaseLost) if !self.is_answered => {
                world.count("self_fenced");
                "fenced"
            }
            Some(Stop::Canceled) => {
                world.count("canceled_while_running");
                "canceled"
            }
            Some(Stop::Timeout) => {
                world.count("timed_out");
                "timed out"
            }
            Some(_) => "told to stop",
            None => "by itself",
        };
        self.step();
        world.ledger.stopped(job, lease);
        world.trace(node.name(), format_args!("stop {} L{lease} {why}", world.ledger.name_of(job)));
    }
}
