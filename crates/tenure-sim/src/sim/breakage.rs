//! Ways to break the system on purpose: a check that never fails proves nothing, so each of these must be found.

/// A bug that a run is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breakage {
    /// A report that the store refused is answered as if it had been written.
    StaleAccepted,
    /// A renewal that did not get through is answered as if it had.
    ForgedRenewals,
    /// Workers count with a longer lease than the store: nobody stops in time.
    LongLeases,
    /// Nobody takes expired leases back.
    NoReclaimer,
    /// A handler writes its rows in another transaction than the one that completes its job.
    EffectsApart,
    /// A producer that hears nothing asks again with a new id and no key.
    FreshIds,
    /// The store is away for good: nothing ever heals.
    NeverHeals,
}
