//! The world of a run: members, what they said, what was heard, and a reference that counts from the beginning.

use std::collections::VecDeque;

use proptest::prelude::*;
use tenure_core::run::{Act, Fan, Moved, Partition, Run, RunEvent, Told};
use tenure_core::{How, JobId, PartitionName, RunState, Timestamp};

use crate::run_properties::{Member, START, Said, Setting, Step, is};

pub(crate) struct World {
    pub(crate) setting: Setting,
    pub(crate) run: Run,
    pub(crate) members: Vec<Member>,
    /// Whether the consolidate may run, and how it ended.
    pub(crate) consolidate: (bool, Option<How>),
    pub(crate) said: VecDeque<Said>,
    pub(crate) jobs: u8,
    pub(crate) now: Timestamp,
    /// Reference: what was heard but for members.
    pub(crate) total: usize,
    pub(crate) begun: bool,
    pub(crate) fan: Fan,
    pub(crate) canceled: bool,
    pub(crate) expired: bool,
    pub(crate) opened: u32,
}

impl World {
    pub(crate) fn new(setting: Setting) -> Self {
        let fan = if setting.consolidate && setting.sealed { Fan::Waiting } else { Fan::None };
        let (fail_fast, tolerated) = (setting.fail_fast, setting.tolerated);
        let total = setting.partitions + setting.items;
        let run = Run { fail_fast, tolerated, fan, total: total as u64, ..Run::new(setting.sealed) };
        let mut world = Self {
            setting,
            run,
            members: Vec::new(),
            consolidate: (false, None),
            said: VecDeque::new(),
            jobs: 0,
            now: START,
            total,
            begun: false,
            fan,
            canceled: false,
            expired: false,
            opened: 0,
        };
        for n in 0..total {
            world.join(n < setting.partitions);
        }
        world
    }

    pub(crate) fn join(&mut self, is_page: bool) {
        let page = is_page.then(|| Partition::new(self.next_job()));
        self.members.push(Member { job: None, heard: None, page });
    }

    pub(crate) fn next_job(&mut self) -> JobId {
        self.jobs += 1;
        JobId::from_parts(START, [self.jobs; 10])
    }

    pub(crate) fn say(&mut self, member: Option<usize>, told: Told) {
        self.said.push_back(Said(member, RunEvent { at: self.now, told, error: None }));
    }

    /// The n-th job that satisfies this; the consolidate comes after the members.
    pub(crate) fn pick(&self, n: usize, wanted: impl Fn(&Member) -> bool) -> Option<usize> {
        let all: Vec<usize> = (0..self.members.len()).filter(|at| wanted(&self.members[*at])).collect();
        all.get(n % all.len().max(1)).copied()
    }

    pub(crate) fn name(member: usize) -> PartitionName {
        format!("p{member}").parse().unwrap()
    }

    /// A member's job ends and says so in the same transaction.
    pub(crate) fn end(&mut self, at: usize, how: How) {
        self.members[at].job = Some(how);
        let told = match &self.members[at].page {
            Some(page) => Told::PageEnded(Self::name(at), page.job, how),
            None => Told::Ended(how, 1),
        };
        self.say(Some(at), told);
    }

    pub(crate) fn end_consolidate(&mut self, how: How) {
        self.consolidate.1 = Some(how);
        self.say(None, Told::FanEnded(how));
    }

    /// Whether anything can be canceled of the consolidate.
    pub(crate) fn has_consolidate(&self) -> bool {
        self.run.fan != Fan::None
    }

    pub(crate) fn revive(&mut self, at: usize) {
        let Some(how) = self.members[at].job.take() else { return };
        let told = match &self.members[at].page {
            Some(page) => Told::PageRequeued(Self::name(at), page.job),
            None => Told::Requeued(how),
        };
        self.say(Some(at), told);
    }

    /// What a store does when a run ends before its members: no page goes on, and all jobs are canceled.
    pub(crate) fn stop(&mut self) {
        for at in 0..self.members.len() {
            let member = &mut self.members[at];
            if let Some(page) = member.page.as_mut().filter(|page| page.state.is_open() && !page.finished) {
                page.turn(RunState::Canceled);
                member.heard = Some(RunState::Canceled);
                self.run.canceled += 1;
            }
            if self.members[at].job.is_none() {
                self.end(at, How::Canceled);
            }
        }
        if self.has_consolidate() && self.consolidate.1.is_none() {
            self.end_consolidate(How::Canceled);
        }
    }

    /// As `RunRecord::refuse_settled`.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.run.state, RunState::Succeeded | RunState::Canceled)
            || matches!(self.run.fan, Fan::Open | Fan::Ended(_))
    }

    pub(crate) fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        self.now = self.now.plus(std::time::Duration::from_secs(1));
        match step {
            Step::End(n, how) => match self.pick(n, |member| member.job.is_none()) {
                Some(at) => self.end(at, how),
                None if self.consolidate == (true, None) => self.end_consolidate(how),
                None => {}
            },
            Step::Page(n, last) => {
                let open = |member: &Member| {
                    let goes_on = |page: &Partition| page.state != RunState::Canceled && !page.finished;
                    member.job.is_none() && member.page.as_ref().is_some_and(goes_on)
                };
                let Some(at) = self.pick(n, open) else { return Ok(()) };
                let next = self.next_job();
                let Some(page) = &mut self.members[at].page else { return Ok(()) };
                page.state = page.state.max(RunState::Running);
                page.finished = last;
                if last {
                    self.end(at, How::Succeeded);
                } else {
                    page.job = next;
                }
            }
            Step::Requeue(n) => {
                let ended = |how: Option<How>| how.is_some_and(|how| how != How::Succeeded);
                match self.pick(n, |member| ended(member.job)) {
                    // Of a consolidate that was skipped this is an operator's own word, and not asked here.
                    None if ended(self.consolidate.1) && self.run.fan != Fan::Skipped => {
                        self.consolidate = (true, None);
                        self.say(None, Told::FanRequeued);
                    }
                    None => {}
                    Some(at) => self.revive(at),
                }
            }
            Step::Resume(n) => {
                let stopped =
                    |member: &Member| member.page.is_some() && member.job.is_some_and(|how| how != How::Succeeded);
                let Some(at) = self.pick(n, stopped).filter(|_| !self.is_settled()) else { return Ok(()) };
                self.revive(at);
                self.expired = false;
                self.run.expired = false;
                let member = &mut self.members[at];
                if let Some(page) = member.page.as_mut().filter(|page| !page.state.is_open()) {
                    self.run.resume(page.turn(RunState::Running));
                    member.heard = None;
                }
            }
            Step::Reset(n) => {
                let pages = |member: &Member| member.page.is_some();
                let Some(at) = self.pick(n, pages).filter(|_| !self.is_settled()) else { return Ok(()) };
                let job = self.next_job();
                let from = self.members[at].page.as_ref().map_or(RunState::Queued, |page| page.state);
                self.members[at] = Member { job: None, heard: None, page: Some(Partition::new(job)) };
                self.expired = false;
                self.run.resume(Moved { from, to: RunState::Queued });
            }
            Step::Add(is_page) => {
                if !self.run.sealed && self.run.state.is_open() {
                    self.join(is_page);
                    self.say(None, Told::Added(1));
                }
            }
            Step::Seal => {
                if !self.run.sealed && self.run.state.is_open() {
                    self.run.sealed = true;
                    if self.setting.consolidate {
                        (self.run.fan, self.fan) = (Fan::Waiting, Fan::Waiting);
                    }
                    self.say(None, Told::Added(0));
                }
            }
            Step::Cancel => {
                if !matches!(self.run.state, RunState::Succeeded | RunState::Canceled) {
                    (self.run.state, self.run.finished_at) = (RunState::Canceled, Some(self.now));
                    self.canceled = true;
                    self.stop();
                }
            }
            Step::Expire => {
                if self.run.state.is_open() {
                    self.run.expire(self.now);
                    self.expired = true;
                    if self.fan == Fan::Waiting {
                        self.fan = Fan::Skipped;
                    }
                    self.stop();
                }
            }
            Step::Hear(portion) => self.hear(portion)?,
        }
        Ok(())
    }

    /// What whoever counts does: hears some sentences in order, settles, and does what follows.
    pub(crate) fn hear(&mut self, portion: usize) -> Result<(), TestCaseError> {
        let mut missed = false;
        if self.run.sealed {
            self.hear_added();
        }
        for Said(member, event) in self.said.drain(..portion.min(self.said.len())).collect::<Vec<_>>() {
            let page = member.and_then(|at| self.members[at].page.as_mut());
            self.run.hear(&event, page);
            missed |= self.note(member, &event.told);
        }
        let act = self.run.settle(self.now);
        let settled = self.run.clone();
        prop_assert_eq!(self.run.settle(self.now.plus(std::time::Duration::from_secs(9))), None, "asked again it acts");
        prop_assert_eq!(&self.run, &settled, "asked again it is something else");
        match act {
            Some(Act::Open) => {
                prop_assert!(self.is_whole(), "R2: it is opened early: {:?} {:?}", self.run, self.members);
                prop_assert!(matches!(self.fan, Fan::Waiting | Fan::Skipped), "what is opened has not begun");
                self.fan = Fan::Open;
                self.opened += 1;
                prop_assert_eq!(self.opened, 1, "R2: it is opened once");
                if self.consolidate.1.take().is_some() {
                    self.say(None, Told::FanRequeued);
                }
                self.consolidate.0 = true;
            }
            Some(Act::Skip) => {
                prop_assert!(self.fan == Fan::Waiting && self.missing() > self.setting.tolerated as usize);
                self.fan = Fan::Skipped;
                self.end_consolidate(How::Canceled);
            }
            Some(Act::CancelRest) => {
                prop_assert!(self.setting.fail_fast && missed, "the rest is canceled although nothing new is missing");
                if self.fan == Fan::Waiting {
                    self.fan = Fan::Skipped;
                }
                // A store cancels afterwards; what the run is by then is asked of the next portion.
                prop_assert_eq!(self.run.state, RunState::Failed);
                self.check()?;
                self.stop();
            }
            None => {}
        }
        self.check()
    }

    /// A store's duty: the seal is no sentence, so whoever sees it must not miss who joined before.
    pub(crate) fn hear_added(&mut self) {
        let (added, others): (VecDeque<Said>, _) =
            self.said.drain(..).partition(|said| matches!(said.1.told, Told::Added(_)));
        self.said = others;
        for Said(member, event) in added {
            self.run.hear(&event, None);
            self.note(member, &event.told);
        }
    }

    /// The reference hears; answers whether something is missing that was not.
    pub(crate) fn note(&mut self, member: Option<usize>, told: &Told) -> bool {
        // What was canceled may never have begun.
        let canceled = |how: &How| *how == How::Canceled;
        self.begun |= match told {
            Told::Added(_) => false,
            Told::Ended(how, _) | Told::PageEnded(_, _, how) | Told::FanEnded(how) => !canceled(how),
            _ => true,
        };
        let Some(at) = member else {
            match told {
                Told::Added(members) => self.total += *members as usize,
                Told::FanEnded(How::Canceled) if self.fan == Fan::Skipped => {}
                Told::FanEnded(how) => self.fan = Fan::Ended(*how),
                Told::FanRequeued => self.fan = Fan::Open,
                _ => {}
            }
            return false;
        };
        let known = &mut self.members[at];
        let was = known.heard;
        let current = |job: &JobId| known.page.as_ref().is_some_and(|page| page.job == *job);
        match told {
            Told::Ended(how, _) => known.heard = Some(is(*how, true)),
            Told::Requeued(_) => known.heard = None,
            // What was stopped stays so, and only the page at hand is listened to.
            Told::PageEnded(_, job, how) if was.is_none() && current(job) => {
                known.heard = Some(is(*how, known.page.as_ref().is_some_and(|page| page.finished)));
            }
            Told::PageRequeued(..) if !self.canceled && was != Some(RunState::Succeeded) => known.heard = None,
            _ => {}
        }
        was != known.heard && matches!(known.heard, Some(RunState::Failed | RunState::Canceled))
    }

    pub(crate) fn count(&self, state: RunState) -> usize {
        self.members.iter().filter(|member| member.heard == Some(state)).count()
    }

    pub(crate) fn missing(&self) -> usize {
        self.count(RunState::Failed) + self.count(RunState::Canceled)
    }

    pub(crate) fn has_all(&self) -> bool {
        // A member that joined and was not heard of is not counted yet; nothing joins what is sealed.
        self.run.sealed && self.total == self.members.len() && self.members.iter().all(|member| member.heard.is_some())
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.has_all() && self.missing() <= self.setting.tolerated as usize
    }

    /// Where the run stands by the reference.
    pub(crate) fn stands(&self) -> RunState {
        let is_missing = self.missing() > self.setting.tolerated as usize;
        match self.fan {
            _ if self.canceled => RunState::Canceled,
            _ if self.expired => RunState::Failed,
            _ if is_missing && (self.has_all() || self.setting.fail_fast) => RunState::Failed,
            Fan::None | Fan::Ended(How::Succeeded) if self.is_whole() => RunState::Succeeded,
            Fan::Ended(_) if self.is_whole() => RunState::Failed,
            _ if self.begun || self.fan == Fan::Open => RunState::Running,
            _ => RunState::Queued,
        }
    }

    pub(crate) fn check(&self) -> Result<(), TestCaseError> {
        let Run { total, done, failed, canceled, .. } = self.run;
        let counted = [RunState::Succeeded, RunState::Failed, RunState::Canceled].map(|state| self.count(state) as u64);
        prop_assert_eq!([done, failed, canceled], counted, "R1: the counts are the members");
        prop_assert_eq!(total, self.total as u64);
        prop_assert_eq!(self.run.fan, self.fan);
        for (at, member) in self.members.iter().enumerate() {
            if let Some(page) = &member.page {
                let state = (!page.state.is_open()).then_some(page.state);
                prop_assert_eq!(state, member.heard, "R1: partition {} is what was heard of it", at);
            }
        }
        let state = self.run.state;
        if state == RunState::Succeeded {
            let fan_is_done = matches!(self.run.fan, Fan::None | Fan::Ended(How::Succeeded));
            prop_assert!(self.is_whole() && fan_is_done, "it has not all it needs: {:?}", self.run);
        }
        Ok(())
    }

    /// Everything is heard: the counts are not only what was said, but what is.
    pub(crate) fn check_truth(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.run.state, self.stands());
        prop_assert_eq!(self.run.finished_at.is_some(), !self.run.state.is_open());
        for (at, Member { job, heard, page }) in self.members.iter().enumerate() {
            // A page that was revived after its run was canceled is nobody's.
            if page.is_some() && self.canceled {
                continue;
            }
            let finished = page.as_ref().is_none_or(|page| page.finished);
            let really = job.map(|how| is(how, finished));
            // Stopped before it was heard that it had failed.
            let stopped = really == Some(RunState::Failed) && page.is_some() && *heard == Some(RunState::Canceled);
            prop_assert!(stopped || *heard == really, "R1: member {} is {:?} and counted as {:?}", at, job, heard);
        }
        Ok(())
    }
}
