//! What can go wrong at the supplier's, for whom and how often.

use kit::Valve;
use serde::Deserialize;
use tenure::Invalid;

use crate::price_range::PriceRange;

/// A call, as a fault sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// For the latest revision.
    Latest,
    /// For a count.
    Count,
    /// For a page; in a fault, `None` is any.
    Page {
        /// The first price of its range.
        min: Option<u64>,
        /// Where it begins.
        offset: Option<u64>,
    },
}

/// What is done instead of an answer.
#[derive(Debug, Clone)]
pub enum Act {
    /// This status.
    Status(u16),
    /// `429`, and a wish to be left alone for so many seconds.
    RetryAfter(u64),
    /// This text, as if it were right.
    Say(String),
    /// The answer comes when the valve is opened.
    Hold(Valve),
}

/// Something that goes wrong.
#[derive(Debug, Clone)]
pub struct Fault {
    about: Ask,
    act: Act,
    /// How often; `None` is always.
    times: Option<u32>,
}

/// What a person orders to go wrong: an answer with a status, or a `429` that asks for so many seconds of silence.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Which calls.
    pub on: On,
    /// Of pages: only of the range that begins at this price.
    pub min: Option<u64>,
    /// Of pages: only those that begin here.
    pub offset: Option<u64>,
    /// The status of the answer.
    pub status: Option<u16>,
    /// Seconds of silence.
    pub retry_after: Option<u64>,
    /// How often; always unless said.
    pub times: Option<u32>,
}

/// The calls there are.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// For the latest revision.
    Latest,
    /// For a count.
    Count,
    /// For a page.
    Page,
}

impl TryFrom<Order> for Fault {
    type Error = Invalid;

    fn try_from(order: Order) -> Result<Self, Invalid> {
        let act = match (order.status, order.retry_after) {
            (Some(status @ 400..=599), None) => Act::Status(status),
            (None, Some(seconds)) => Act::RetryAfter(seconds),
            _ => {
                return Err(Invalid::new(
                    "fault",
                    format!("{order:?}"),
                    "it has a status from 400 to 599, or retry_after",
                ));
            }
        };
        let about = match order.on {
            On::Latest => Ask::Latest,
            On::Count => Ask::Count,
            On::Page => Ask::Page { min: order.min, offset: order.offset },
        };
        let fault = Self::on(about, act);
        Ok(order.times.map_or(fault.clone(), |times| fault.times(times)))
    }
}

impl Fault {
    /// Always, when any page is asked for.
    pub fn on_pages(act: Act) -> Self {
        Self::on(Ask::Page { min: None, offset: None }, act)
    }

    /// Always, when this is asked for.
    pub fn on(about: Ask, act: Act) -> Self {
        Self { about, act, times: None }
    }

    /// So often, and then no more.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times: Some(times.max(1)), ..self }
    }
}

/// The first fault about this call, used once.
pub(super) fn take(faults: &mut Vec<Fault>, ask: &Ask) -> Option<Act> {
    let at = faults.iter().position(|fault| fault.about.fits(ask))?;
    let act = faults[at].act.clone();
    if let Some(times) = &mut faults[at].times {
        *times -= 1;
        if *times == 0 {
            faults.remove(at);
        }
    }
    Some(act)
}

impl Ask {
    /// A page of a range.
    pub fn page_of(prices: PriceRange, offset: u64) -> Self {
        Self::Page { min: Some(prices.min_cents()), offset: Some(offset) }
    }

    fn fits(&self, ask: &Self) -> bool {
        match (self, ask) {
            (Self::Page { min, offset }, Self::Page { min: asked, offset: at }) => {
                (min.is_none() || min == asked) && (offset.is_none() || offset == at)
            }
            (one, other) => one == other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_met_so_often_by_those_it_is_about() {
        let page = |min, offset| Ask::Page { min: Some(min), offset: Some(offset) };
        let about = Ask::Page { min: None, offset: Some(30) };
        let mut faults = vec![Fault::on(about, Act::Status(500)).times(2), Fault::on(Ask::Count, Act::Status(503))];
        assert!(take(&mut faults, &page(7, 0)).is_none());
        assert!(take(&mut faults, &Ask::Latest).is_none());
        for _ in 0..2 {
            assert!(matches!(take(&mut faults, &page(7, 30)), Some(Act::Status(500))));
        }
        assert!(take(&mut faults, &page(7, 30)).is_none());
        for _ in 0..9 {
            assert!(matches!(take(&mut faults, &Ask::Count), Some(Act::Status(503))));
        }
    }
}
