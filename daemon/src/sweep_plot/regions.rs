//! The picture of `plan edge sweep`: where layers run, and how long that takes, over the bandwidth of the link. SVG.

use layerlab_campaign::plot::axis::{Axis, Unit};
use layerlab_campaign::plot::legend::Entry;
use plotters::prelude::RGBColor;

use super::chart::{Band, Chart, ChartLine, Point};
use super::{COLOURS, picture};

const NOTE: &str = "Each way the link has the bandwidth that is named below. Colours behind the lines say where the fastest plan \
runs its layers.";

/// Where a plan runs its layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    /// All on the phone.
    Phone,
    /// Some on the phone, some on the server.
    Split,
    /// All on the server.
    Server,
}

impl Region {
    const ALL: [Region; 3] = [Region::Phone, Region::Split, Region::Server];

    /// The name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Region::Phone => "phone",
            Region::Split => "split",
            Region::Server => "server",
        }
    }

    const fn colour(self) -> RGBColor {
        match self {
            Region::Phone => RGBColor(223, 233, 245),
            Region::Split => RGBColor(247, 234, 208),
            Region::Server => RGBColor(222, 240, 222),
        }
    }

    const fn meaning(self) -> &'static str {
        match self {
            Region::Phone => "all layers on the phone",
            Region::Split => "split between phone and server",
            Region::Server => "all layers on the server",
        }
    }
}

/// What was planned for one bandwidth.
pub(crate) struct Planned {
    /// The bandwidth each way, in bit/s.
    pub(crate) bandwidth_bps: u64,
    /// Where the fastest plan runs.
    pub(crate) region: Region,
    /// How long the fastest plan, all on the phone and all on the server take, in ns; nothing where there is no such plan.
    pub(crate) latencies_ns: [Option<u64>; 3],
}

const LINES: [&str; 3] = [
    "the fastest plan",
    "everything on the phone",
    "everything on the server",
];

/// The sweep, drawn; `planned` has the lowest bandwidth first.
///
/// # Errors
/// When the drawing library fails, which it does not on a drawing in memory.
pub(crate) fn svg(title: &str, planned: &[Planned]) -> Result<String, String> {
    let line = |place: usize| ChartLine {
        colour: COLOURS[place],
        points: planned
            .iter()
            .map(|at| Point {
                limit: at.bandwidth_bps as f64,
                // What takes no time has no place on this axis.
                reached: at.latencies_ns[place].map(|nanos| nanos.max(1) as f64),
                ran: None,
            })
            .collect(),
    };
    let latencies = planned.iter().flat_map(|at| at.latencies_ns).flatten();
    let bandwidths = planned.iter().map(|at| at.bandwidth_bps);
    let chart = Chart::logarithmic(
        "Where do the layers run, and how long does that take?",
        ("bandwidth each way", axis(bandwidths, Unit::Bandwidth)),
        ("time of one inference", axis(latencies, Unit::Time)),
        (0..LINES.len()).map(line).collect(),
        bands(planned),
    );
    let regions = Region::ALL.into_iter();
    let regions = regions.filter(|region| planned.iter().any(|at| at.region == *region));
    let regions = regions.map(|region| (region.meaning().to_owned(), region.colour()));
    let lines = LINES.into_iter().zip(COLOURS);
    let lines = lines.map(|(name, colour)| (name.to_owned(), colour));
    let entries: Vec<Entry> = lines.chain(regions).collect();
    picture(title, &entries, &[chart], NOTE)
}

fn axis(values: impl Iterator<Item = u64>, unit: Unit) -> Axis {
    let values: Vec<u64> = values.collect();
    let low = values.iter().copied().min().unwrap_or(1).max(1);
    let high = values.iter().copied().max().unwrap_or(1).max(low);
    Axis::logarithmic(low as f64, high as f64, unit)
}

/// Neighbouring bandwidths of one region are one band; two regions meet halfway.
fn bands(planned: &[Planned]) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    let mut from = planned.first().map_or(1.0, |at| at.bandwidth_bps as f64);
    for (at, next) in planned
        .iter()
        .zip(planned.iter().skip(1).map(Some).chain([None]))
    {
        let here = at.bandwidth_bps as f64;
        let to = match next {
            Some(next) if next.region == at.region => continue,
            Some(next) => (here * next.bandwidth_bps as f64).sqrt(),
            None => here,
        };
        let colour = at.region.colour();
        bands.push(Band { from, to, colour });
        from = to;
    }
    bands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned() -> Vec<Planned> {
        let at = |(place, region)| Planned {
            bandwidth_bps: 10_u64.pow(place),
            region,
            latencies_ns: [Some(1_000_000), Some(2_000_000), None],
        };
        let regions = [Region::Phone, Region::Phone, Region::Split, Region::Server];
        (5..).zip(regions).map(at).collect()
    }

    #[test]
    fn bands_cover_the_axis_and_meet_halfway() {
        let bands = bands(&planned());
        let ends: Vec<(f64, f64)> = bands.iter().map(|band| (band.from, band.to)).collect();
        let halfway = |low: f64| low * 10_f64.sqrt();
        let expected = [
            (1e5, halfway(1e6)),
            (halfway(1e6), halfway(1e7)),
            (halfway(1e7), 1e8),
        ];
        assert_eq!(ends.len(), expected.len(), "{ends:?}");
        for (found, expected) in ends.iter().zip(expected) {
            assert!((found.0 / expected.0 - 1.0).abs() < 1e-12, "{ends:?}");
            assert!((found.1 / expected.1 - 1.0).abs() < 1e-12, "{ends:?}");
        }
    }

    #[test]
    fn what_is_drawn_is_named() {
        let drawn = svg("a sweep", &planned()).expect("a drawing");
        for words in [
            "the fastest plan",
            "everything on the server",
            "all layers on the phone",
            "split between phone and server",
            "1 Mbit/s",
        ] {
            assert!(drawn.contains(words), "`{words}` is missing");
        }
        let phone_alone = svg("a sweep", &planned()[..2]).expect("a drawing");
        assert!(!phone_alone.contains("split between"));
    }
}
