//! How sure a plan over a measured link is of its latency: 95 % intervals, from those of the layer times on both sides and
//! of the link's fit.

use layerlab_profiles::link::{LinkDirection, LinkDocument, Moved, half_width_ns};
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
    /// Phone, link and server were measured apart, so that their errors are independent and half-widths add in squares. What is
    /// the same in several requests errs together.
    pub fn intervals(&self, plan: &SplitPlan, link: &LinkDocument) -> LatencyIntervals {
        let on_phone = self.half_width_on(Side::Phone, plan);
        let on_server = self.half_width_on(Side::Server, plan);
        let on_link = self.half_width_of_link(plan, link);
        let shares = plan.shares();
        let together = |halves: &[Option<f64>]| {
            let squares = halves.iter().map(|half| half.map(|half| half * half));
            squares.sum::<Option<f64>>().map(f64::sqrt)
        };
        LatencyIntervals {
            all: around(
                plan.cost().latency,
                together(&[on_phone, on_server, on_link]),
            ),
            phone: around(shares.phone, on_phone),
            link: around(shares.upload + shares.download, on_link),
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

    /// Half the width of the interval of all that crosses, in ns. Half of a round trip belongs to each crossing.
    fn half_width_of_link(&self, plan: &SplitPlan, link: &LinkDocument) -> Option<f64> {
        let moved: Vec<Moved> = [
            (Direction::Upload, LinkDirection::Upload),
            (Direction::Download, LinkDirection::Download),
        ]
        .into_iter()
        .filter_map(|(direction, measured)| self.moved(plan, direction, measured))
        .collect();
        match moved.is_empty() {
            true => Some(0.0),
            false => half_width_ns(&link.samples, link.header.method.connections, &moved).ok(),
        }
    }

    /// All that crosses one way, if anything does.
    fn moved(
        &self,
        plan: &SplitPlan,
        direction: Direction,
        measured: LinkDirection,
    ) -> Option<Moved> {
        let tensors = self.network().tensors();
        let crossing = plan.transfers().iter();
        let crossing = crossing.filter(|one| one.direction == direction);
        let (mut count, mut bytes) = (0_u32, Bytes::ZERO);
        for one in crossing {
            count += 1;
            bytes = bytes + tensors[one.tensor].bytes;
        }
        (count > 0).then(|| Moved {
            direction: measured,
            round_trips: f64::from(count) / 2.0,
            bytes,
        })
    }
}

fn around(time: Nanos, half_width: Option<f64>) -> Option<(Nanos, Nanos)> {
    let half = half_width.filter(|half| half.is_finite())?;
    let nanos = time.as_nanos();
    let half = half.ceil() as u64;
    let ends = (nanos.saturating_sub(half), nanos.saturating_add(half));
    Some((Nanos::from_nanos(ends.0), Nanos::from_nanos(ends.1)))
}
