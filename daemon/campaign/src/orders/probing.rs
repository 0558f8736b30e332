//! Orders that time probes, before a design that chooses as it goes spends what is left of the budget.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use layerlab_profiles::Nanos;
use layerlab_protocol::Order;

use super::device_time::DeviceTime;
use super::{News, Orders, PlannerError};

/// The order that is worked off and the next: what is sent is measured, whatever the time that is left.
const AHEAD: usize = 2;

/// The device time that the probes of one processor took, for those who wait for them.
#[derive(Clone, Debug)]
pub struct ProbingTime(Arc<OnceLock<Nanos>>);

impl ProbingTime {
    /// Of a processor that has no probes.
    pub fn of_none() -> ProbingTime {
        ProbingTime(Arc::new(OnceLock::from(Nanos::ZERO)))
    }

    /// What they took; `None` until the last of them is timed.
    pub fn total(&self) -> Option<Nanos> {
        self.0.get().copied()
    }
}

/// Orders for probes, as long as they have not taken more time than they may.
pub struct Probing {
    waiting: VecDeque<Order>,
    open: usize,
    spent: DeviceTime,
    time: ProbingTime,
    most: Option<Nanos>,
}

impl Probing {
    /// These orders, none of which is sent once they have taken as long as `most`.
    pub fn new(orders: Vec<Order>, most: Option<Nanos>) -> Probing {
        Probing {
            waiting: orders.into(),
            open: 0,
            spent: DeviceTime::default(),
            time: ProbingTime(Arc::default()),
            most,
        }
    }

    /// How long they take.
    pub fn time(&self) -> ProbingTime {
        self.time.clone()
    }
}

impl Orders for Probing {
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError> {
        for event in news {
            match event {
                News::Sample(sample) => self.spent.count(sample),
                News::Elsewhere { until } => self.spent.leave_out(*until),
                News::Finished(_) => self.open = self.open.saturating_sub(1),
                _ => {}
            }
        }
        let spent = self.spent.total();
        if self.most.is_some_and(|most| spent >= most) {
            self.waiting.clear();
        }
        let more = AHEAD.saturating_sub(self.open).min(self.waiting.len());
        self.open += more;
        if self.open == 0 {
            self.time.0.get_or_init(|| spent);
        }
        Ok(self.waiting.drain(..more).collect())
    }
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::Segment;
    use layerlab_profiles::document::Sample;

    use super::super::tests::{begun, template, told};
    use super::*;

    fn sample(order: u32, end_ms: u64) -> News {
        News::Sample(Sample {
            processor: "npu".to_owned(),
            segment: Segment::single(1),
            order,
            block: 0,
            index: 0,
            started: Nanos::from_millis(end_ms - 1),
            duration: Nanos::from_millis(1),
        })
    }

    #[test]
    fn no_probe_is_begun_once_probes_have_taken_their_share() {
        let most = Some(Nanos::from_millis(100));
        let mut orders = Probing::new(vec![template(); 30], most);
        let time = orders.time();
        assert_eq!(begun(&mut orders).len(), AHEAD);
        assert!(told(&mut orders, sample(1, 10)).is_empty());
        assert_eq!(told(&mut orders, News::Finished(1)).len(), 1);
        assert!(told(&mut orders, sample(2, 200)).is_empty());
        assert_eq!(told(&mut orders, News::Finished(2)), []);
        assert_eq!(time.total(), None, "one is in progress");
        assert!(told(&mut orders, sample(3, 300)).is_empty());
        assert_eq!(told(&mut orders, News::Finished(3)), []);
        // The first sample has nothing before it but itself.
        assert_eq!(time.total(), Some(Nanos::from_millis(291)));
    }
}
