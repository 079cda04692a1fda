//! The tables of the protocol and what each worker remembers, as small as they can be.

use tenure_core::{How, State as Stands};

/// Everything: `J` jobs, `W` worker processes, at most `S` leases that somebody still knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World<const J: usize, const W: usize, const S: usize> {
    /// The jobs.
    pub jobs: [Job; J],
    /// Leases in the order of their numbers, and the attempts under them; zero numbers at the end are free places.
    pub leases: [Lease<J>; S],
    /// What each worker has in hand.
    pub hands: [Hand<J>; W],
    /// The last lease number drawn.
    pub drawn: u16,
    /// The lease a reaper of two statements has read and not yet written (a mutant's; ours is one statement).
    pub reaper: u16,
}

/// A job: its ready row, its final attempt, its cancel request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Job {
    /// Whether it is there: not before its enqueue, not after it was pruned.
    pub there: bool,
    /// Its ready row: queued or retryable.
    pub ready: Option<Stands>,
    /// How its final attempt ended.
    pub ended: Option<How>,
    /// Attempts charged, the running one included.
    pub attempt: u8,
    /// Leases lost.
    pub losses: u8,
    /// Whether somebody asked for its end.
    pub request: Request,
    /// Grants since it was enqueued or requeued; nobody but I5 looks at it.
    pub starts: u8,
    /// Grants that were neither charged nor lost: snoozed, released.
    pub excused: u8,
    /// Requeues.
    pub requeues: u8,
    /// Completions accepted; nobody but I1 looks at it.
    pub completions: u8,
}

/// A cancel request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Request {
    /// Nobody asked.
    No,
    /// In an operator's open transaction: nobody else sees it.
    Open,
    /// Asked.
    Asked,
}

/// A lease, and the attempts that ended under it: they outlive its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease<const J: usize> {
    /// The fence.
    pub no: u16,
    /// Whether the row is there.
    pub row: bool,
    /// Whether it is overdue.
    pub expired: bool,
    /// The worker process, or [`NOBODY`] once that is dead.
    pub owner: u8,
    /// The jobs it lists.
    pub grants: [Option<Grant>; J],
}

/// The owner of what a dead process left behind.
pub const NOBODY: u8 = u8::MAX;

/// A job under a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The number of the attempt.
    pub attempt: u8,
    /// Leases lost before.
    pub losses: u8,
    /// The attempt row of key (job, lease).
    pub ended: Option<How>,
    /// The same row in a user's open transaction, which holds the lease for key share.
    pub in_tx: bool,
}

/// A worker's memory: the lease it works on (zero: none) and where each of its jobs is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hand<const J: usize> {
    /// The lease it knows.
    pub lease: u16,
    /// What it does with each job.
    pub grips: [Grip; J],
}

/// Where a job is in a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Grip {
    /// Not here, or reported and answered.
    No,
    /// Its handler runs.
    Runs,
    /// Its handler has completed it in a transaction that is open.
    InTx,
    /// Its handler said `Completed`; whether that was committed is to be found out.
    AfterTx,
    /// Reported, and the reply was lost: `first` is what the report did, which only the store knows.
    Unsure {
        /// What was reported and will be again.
        ending: How,
        /// What was written, if it was.
        first: Option<How>,
    },
}

impl<const J: usize, const W: usize, const S: usize> World<J, W, S> {
    /// Every job queued, or none there yet.
    pub const fn new(there: bool) -> Self {
        let grips = [Grip::No; J];
        let no_lease = Lease { no: 0, row: false, expired: false, owner: NOBODY, grants: [None; J] };
        Self {
            jobs: [Job::new(there); J],
            leases: [no_lease; S],
            hands: [Hand { lease: 0, grips }; W],
            drawn: 0,
            reaper: 0,
        }
    }

    /// The place of the lease with this number.
    pub fn find(&self, no: u16) -> Option<usize> {
        self.leases.iter().position(|lease| lease.no == no && no > 0)
    }

    /// The lease that holds a job: a row that lists it, and no attempt under it.
    pub fn holder(&self, job: usize) -> Option<usize> {
        self.leases.iter().position(|lease| lease.holds(job))
    }

    /// Whether a worker knows this lease.
    pub fn is_known(&self, lease: &Lease<J>) -> bool {
        self.hands.get(usize::from(lease.owner)).is_some_and(|hand| hand.lease == lease.no)
    }

    /// A job's grant under this lease number.
    pub fn grant(&self, no: u16, job: usize) -> Option<&Grant> {
        self.leases[self.find(no)?].grants[job].as_ref()
    }

    /// In how many places a job is: ready, under a live lease, ended. I10 wants one.
    pub fn places(&self, job: usize) -> usize {
        let held = self.leases.iter().filter(|lease| lease.holds(job)).count();
        held + usize::from(self.jobs[job].ready.is_some()) + usize::from(self.jobs[job].ended.is_some())
    }

    /// Forgets what nobody can ask about any more: workers with empty hands know no lease, and a lease without a row
    /// that nobody knows is gone with its attempts.
    pub fn forget(&mut self) {
        for at in 0..W {
            let hand = self.hands[at];
            let row = self.find(hand.lease).is_some_and(|place| self.leases[place].row);
            if hand.lease > 0 && !row && hand.grips.iter().all(|grip| *grip == Grip::No) {
                self.hands[at].lease = 0;
            }
        }
        let mut kept = 0;
        for at in 0..S {
            let lease = self.leases[at];
            let known = self.hands.iter().any(|hand| hand.lease == lease.no) || self.reaper == lease.no;
            if lease.no > 0 && (lease.row || known || lease.is_locked()) {
                self.leases[kept] = lease;
                kept += 1;
            }
        }
        let free = Self::new(false).leases[0];
        self.leases[kept..].fill(free);
    }
}

impl Job {
    const fn new(there: bool) -> Self {
        Self {
            there,
            ready: if there { Some(Stands::Queued) } else { None },
            ended: None,
            attempt: 0,
            losses: 0,
            request: Request::No,
            starts: 0,
            excused: 0,
            requeues: 0,
            completions: 0,
        }
    }

    /// A fresh one.
    pub const fn enqueued() -> Self {
        Self::new(true)
    }

    /// Not there any more.
    pub const fn pruned(self) -> Self {
        Self { completions: self.completions, request: self.request.forgotten(), ..Self::new(false) }
    }
}

impl Request {
    /// What is left of it when it is deleted: what nobody sees yet cannot be.
    pub const fn forgotten(self) -> Self {
        match self {
            Self::No | Self::Asked => Self::No,
            Self::Open => Self::Open,
        }
    }
}

impl<const J: usize> Lease<J> {
    /// Whether a job is running under it.
    pub fn holds(&self, job: usize) -> bool {
        self.row && self.grants[job].is_some_and(|grant| grant.ended.is_none())
    }

    /// Whether every job it lists has ended.
    pub fn is_emptied(&self) -> bool {
        self.grants.iter().flatten().all(|grant| grant.ended.is_some())
    }

    /// Whether a user's open transaction holds it.
    pub fn is_locked(&self) -> bool {
        self.grants.iter().flatten().any(|grant| grant.in_tx)
    }
}
