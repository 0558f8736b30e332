//! How sure a plan over a measured link is of its latency: 95 % intervals, from those of the layer times on both sides and
//! of the link's fit.

use layerlab_profiles::link::{LinkDirection, LinkDocument, Moved, half_width_ns, small_exchanges};
use layerlab_profiles::{Nanos, Segment};

use super::measured::MeasuredNetwork;
use super::measured_link::{measured_link, smallest_transfer};
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

/// How much sooner and later all that crosses a link may arrive than planned.
#[derive(Clone, Copy, Default)]
struct OffIfAwake {
    sooner: Nanos,
    later: Nanos,
}

impl MeasuredNetwork {
    /// The intervals of a plan of this network over the measured `link`.
    ///
    /// Phone, link and server were measured apart, so that their errors are independent and half-widths add in squares. What is
    /// the same in several requests errs together. What small tensors may wait less or more, because the link is awake, is
    /// beside that on its own side.
    pub fn intervals(&self, plan: &SplitPlan, link: &LinkDocument) -> LatencyIntervals {
        let on_phone = self.half_width_on(Side::Phone, plan);
        let on_server = self.half_width_on(Side::Server, plan);
        let on_link = self.half_width_of_link(plan, link);
        let shares = plan.shares();
        let together = |halves: &[Option<f64>]| {
            let squares = halves.iter().map(|half| half.map(|half| half * half));
            squares.sum::<Option<f64>>().map(f64::sqrt)
        };
        let in_all = together(&[on_phone, on_server, on_link]);
        let crossing = shares.upload + shares.download;
        let awake = self.off_if_awake(plan, link);
        let with_awake = |interval: Option<(Nanos, Nanos)>| {
            let ((low, high), awake) = interval.zip(awake)?;
            Some((low - awake.sooner, high + awake.later))
        };
        LatencyIntervals {
            all: with_awake(around(plan.cost().latency, in_all)),
            phone: around(shares.phone, on_phone),
            link: with_awake(around(crossing, on_link)),
            server: around(shares.server, on_server),
        }
    }

    /// How far all that crosses is from what is planned where both ends of the link are awake. Small tensors are planned to wait as
    /// the smallest exchanges did, which came after a rest; a phone that has just computed, or a server that has, may not have
    /// rested, and the wait is then that of large ones, whose last bytes find both ends awake. Which it will be is not known.
    fn off_if_awake(&self, plan: &SplitPlan, document: &LinkDocument) -> Option<OffIfAwake> {
        let mut off = OffIfAwake::default();
        if plan.transfers().is_empty() {
            return Some(off);
        }
        let link = measured_link(document, self).ok()?;
        for one in plan.transfers() {
            let rested = link.wait(one.direction, self.network().bytes_of(one));
            let awake = match one.direction {
                Direction::Upload => link.upload_wait.large,
                Direction::Download => link.download_wait.large,
            };
            off.sooner = off.sooner + (rested - awake);
            off.later = off.later + (awake - rested);
        }
        Some(off)
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
        for packed in plan.transfers().iter().filter(|one| one.codec.is_some()) {
            let half_widths = self.half_widths(packed)?;
            squares += half_widths.on(side, packed.direction.to())?.powi(2);
        }
        Some(squares.sqrt())
    }

    /// Half the width of the interval of all that crosses, in ns. Half of a round trip belongs to each crossing.
    fn half_width_of_link(&self, plan: &SplitPlan, link: &LinkDocument) -> Option<f64> {
        match plan.transfers() {
            [] => Some(0.0),
            _ => {
                let connections = link.header.method.connections;
                let moved = self.moved(plan, link);
                let as_planned = half_width_ns(&link.samples, connections, &moved).ok()?;
                let more_or_fewer = self.half_width_of_sizes(plan, link)?;
                Some(as_planned.hypot(more_or_fewer))
            }
        }
    }

    /// Half the width of the interval of what packed bytes take that are more or fewer than expected, in ns.
    fn half_width_of_sizes(&self, plan: &SplitPlan, link: &LinkDocument) -> Option<f64> {
        let mut squares = 0.0;
        for packed in plan.transfers().iter().filter(|one| one.codec.is_some()) {
            let way = match packed.direction {
                Direction::Upload => LinkDirection::Upload,
                Direction::Download => LinkDirection::Download,
            };
            let row = link.rows.iter().find(|row| row.direction == way)?;
            let nanos_per_byte = 8e9 / row.fit.bandwidth_bps as f64;
            squares += (self.half_widths(packed)?.bytes? * nanos_per_byte).powi(2);
        }
        Some(squares.sqrt())
    }

    /// All that crosses. Of a tensor that is smaller than all transfers that were timed, in proportion, the half of a round trip
    /// is that of the smallest exchanges.
    fn moved(&self, plan: &SplitPlan, link: &LinkDocument) -> Moved {
        let small_below = match small_exchanges(&link.samples).durations.is_empty() {
            true => 0.0,
            false => smallest_transfer(link).as_bytes() as f64,
        };
        let mut moved = Moved::default();
        for one in plan.transfers() {
            let way = match one.direction {
                Direction::Upload => &mut moved.upload,
                Direction::Download => &mut moved.download,
            };
            let bytes = self.network().bytes_of(one).as_bytes() as f64;
            let small = match bytes < small_below {
                true => 1.0 - bytes / small_below,
                false => 0.0,
            };
            way.bytes += bytes;
            way.round_trips += (1.0 - small) / 2.0;
            moved.small_round_trips += small / 2.0;
        }
        moved
    }
}

fn around(time: Nanos, half_width: Option<f64>) -> Option<(Nanos, Nanos)> {
    let half = half_width.filter(|half| half.is_finite())?;
    let nanos = time.as_nanos();
    let half = half.ceil() as u64;
    let ends = (nanos.saturating_sub(half), nanos.saturating_add(half));
    Some((Nanos::from_nanos(ends.0), Nanos::from_nanos(ends.1)))
}
