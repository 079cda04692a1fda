//! Two workers and two jobs under the lease protocol, as far as the small models need it: a grant may be lost, and its
//! worker does not know.

/// Grants of one job at most.
const GRANTS_MAX: u8 = 2;

/// Jobs and hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Crew {
    /// Each job.
    pub(super) jobs: [Job; 2],
    /// Each worker's job and the number of its grant.
    hands: [Option<(u8, u8)>; 2],
}

/// Where a job is, and how often it was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Job {
    pub(super) place: Place,
    grants: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Ready,
    Held,
    Ended,
}

/// What happens to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Claim {
        worker: u8,
        job: u8,
    },
    /// What a worker reports, stale or not.
    Finish {
        worker: u8,
    },
    /// The lease expires and is reclaimed.
    Lose {
        job: u8,
    },
}

impl Crew {
    pub(super) const fn new() -> Self {
        Self { jobs: [Job { place: Place::Ready, grants: 0 }; 2], hands: [None; 2] }
    }

    pub(super) fn acts(&self) -> Vec<Act> {
        let mut acts = Vec::new();
        for worker in 0..2_u8 {
            match self.hands[usize::from(worker)] {
                Some(_) => acts.push(Act::Finish { worker }),
                None => {
                    let ready = (0..2_u8).filter(|job| self.jobs[usize::from(*job)].place == Place::Ready);
                    acts.extend(ready.map(|job| Act::Claim { worker, job }));
                }
            }
        }
        for job in 0..2_u8 {
            let known = self.jobs[usize::from(job)];
            if known.place == Place::Held && known.grants < GRANTS_MAX {
                acts.push(Act::Lose { job });
            }
        }
        acts
    }

    /// Takes an act; answers whether it changed the job: a stale report does not.
    pub(super) fn take(&mut self, act: Act) -> bool {
        match act {
            Act::Claim { worker, job } => {
                let known = &mut self.jobs[usize::from(job)];
                *known = Job { place: Place::Held, grants: known.grants + 1 };
                self.hands[usize::from(worker)] = Some((job, known.grants));
                true
            }
            Act::Finish { worker } => {
                let Some((job, grant)) = self.hands[usize::from(worker)].take() else { return false };
                let known = &mut self.jobs[usize::from(job)];
                let current = known.place == Place::Held && known.grants == grant;
                if current {
                    known.place = Place::Ended;
                }
                current
            }
            Act::Lose { job } => {
                self.jobs[usize::from(job)].place = Place::Ready;
                true
            }
        }
    }

    pub(super) fn count(&self, place: Place) -> u8 {
        self.jobs.iter().filter(|job| job.place == place).count() as u8
    }
}

impl Act {
    pub(super) fn tell(self) -> String {
        match self {
            Self::Claim { worker, job } => format!("W{} claims J{}", worker + 1, job + 1),
            Self::Finish { worker } => format!("W{} reports its job succeeded", worker + 1),
            Self::Lose { job } => format!("the lease of J{} expires and is reclaimed", job + 1),
        }
    }
}
