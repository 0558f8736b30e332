//! Orders that time probes, before a design that chooses as it goes spends what is left of the budget.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use layerlab_profiles::Nanos;
use layerlab_protocol::Order;

use super::device_time::DeviceTime;
use super::{News, Orders, PlannerError};

/// The order that is worked off and the next: what is sent is measured, whatever the time that is left.
const AHEAD: usize = 2;

/// The device time that the probes of one processor took, known to those who come after them.
#[derive(Clone, Debug, Default)]
pub struct ProbingTime(Arc<AtomicU64>);

impl ProbingTime {
    /// What they took so far.
    pub fn total(&self) -> Nanos {
        Nanos::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// Orders for probes, as long as they have not taken more time than they may.
pub struct Probing {
    waiting: VecDeque<Order>,
    open: usize,
    spent: DeviceTime,
    told: ProbingTime,
    most: Option<Nanos>,
}

impl Probing {
    /// These orders, none of which is sent once they have taken as long as `most`; `told` is told how long.
    pub fn new(orders: Vec<Order>, most: Option<Nanos>, told: ProbingTime) -> Probing {
        Probing {
            waiting: orders.into(),
            open: 0,
            spent: DeviceTime::default(),
            told,
            most,
        }
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
        self.told.0.store(spent.as_nanos(), Ordering::Relaxed);
        if self.most.is_some_and(|most| spent >= most) {
            self.waiting.clear();
        }
        let more = AHEAD.saturating_sub(self.open).min(self.waiting.len());
        self.open += more;
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
        let told_to = ProbingTime::default();
        let most = Some(Nanos::from_millis(100));
        let mut orders = Probing::new(vec![template(); 30], most, told_to.clone());
        assert_eq!(begun(&mut orders).len(), AHEAD);
        assert!(told(&mut orders, sample(1, 10)).is_empty());
        assert_eq!(told(&mut orders, News::Finished(1)).len(), 1);
        assert!(told(&mut orders, sample(2, 200)).is_empty());
        assert_eq!(told(&mut orders, News::Finished(2)), []);
        // The first sample has nothing before it but itself.
        assert_eq!(told_to.total(), Nanos::from_millis(191));
    }
}
