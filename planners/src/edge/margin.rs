//! How sure a plan over a measured link is of its latency: 95 % intervals, from those of the layer times on both sides and
//! of the link's fit.

use layerlab_profiles::link::{LinkDirection, LinkDocument, half_width_ns, transfers};
use layerlab_profiles::{Bytes, Nanos, Segment};

use super::measured::MeasuredNetwork;
use super::plan::SplitPlan;
use super::side::{Direction, Side};

/// The 95 % intervals of the median latency of one run of a plan, and of its parts. Nothing where what was measured gives none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyIntervals {
    /// Of all of it.
    pub all: Option<(Nanos, Nanos)>,
    /// Of computing on the phone.
    pub phone: Option<(Nanos, Nanos)>,
    /// Of uploads and downloads together.
    pub link: Option<(Nanos, Nanos)>,
    /// Of computing on the server.
    pub server: Option<(Nanos, Nanos)>,
}

impl MeasuredNetwork {
    /// The intervals of a plan of this network over the measured `link`.
    ///
    /// Phone, uploads, downloads and server were measured apart, so that their errors are independent and half-widths add in
    /// squares. What is the same in several requests errs together.
    pub fn intervals(&self, plan: &SplitPlan, link: &LinkDocument) -> LatencyIntervals {
        let on_phone = self.half_width_on(Side::Phone, plan);
        let on_server = self.half_width_on(Side::Server, plan);
        let up = self.half_width_of(Direction::Upload, plan, link);
        let down = self.half_width_of(Direction::Download, plan, link);
        let shares = plan.shares();
        let together = |halves: &[Option<f64>]| {
            let squares = halves.iter().map(|half| half.map(|half| half * half));
            squares.sum::<Option<f64>>().map(f64::sqrt)
        };
        LatencyIntervals {
            all: around(
                plan.cost().latency,
                together(&[on_phone, on_server, up, down]),
            ),
            phone: around(shares.phone, on_phone),
            link: around(shares.upload + shares.download, together(&[up, down])),
            server: around(shares.server, on_server),
        }
    }

    /// Half the width of the interval of what a side computes, in ns. Its processors were timed in turns, each apart.
    fn half_width_on(&self, side: Side, plan: &SplitPlan) -> Option<f64> {
        let mut squares = 0.0;
        for (place, processor) in self.processors(side).iter().enumerate() {
            let groups = plan.groups().iter().filter(|group| group.side == side);
            let groups = groups.filter(|group| self.place(group) == Some(place));
            let groups: Vec<Segment> = groups.map(|group| group.segment).collect();
            if !groups.is_empty() {
                squares += processor.half_width_ns(&groups)?.powi(2);
            }
        }
        Some(squares.sqrt())
    }

    /// Half the width of the interval of what crosses one way, in ns. Half of a round trip belongs to each crossing.
    fn half_width_of(
        &self,
        direction: Direction,
        plan: &SplitPlan,
        link: &LinkDocument,
    ) -> Option<f64> {
        let tensors = self.network().tensors();
        let crossing = plan.transfers().iter();
        let crossing = crossing.filter(|one| one.direction == direction);
        let (mut count, mut bytes) = (0_u32, Bytes::ZERO);
        for one in crossing {
            count += 1;
            bytes = bytes + tensors[one.tensor].bytes;
        }
        if count == 0 {
            return Some(0.0);
        }
        let measured = match direction {
            Direction::Upload => LinkDirection::Upload,
            Direction::Download => LinkDirection::Download,
        };
        let transfers = transfers(&link.samples, measured);
        half_width_ns(&transfers, f64::from(count) / 2.0, bytes).ok()
    }
}

fn around(time: Nanos, half_width: Option<f64>) -> Option<(Nanos, Nanos)> {
    let half = half_width.filter(|half| half.is_finite())?;
    let nanos = time.as_nanos();
    let half = half.ceil() as u64;
    let ends = (nanos.saturating_sub(half), nanos.saturating_add(half));
    Some((Nanos::from_nanos(ends.0), Nanos::from_nanos(ends.1)))
}
