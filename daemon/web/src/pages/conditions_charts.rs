//! How a device was over the time of a run: the sentinel, temperatures, clocks, the battery and what else ran, as far as it tells
//! them.

use std::collections::{BTreeMap, BTreeSet};

use layerlab_farm::adb::Printable;
use layerlab_profiles::MilliCelsius;
use layerlab_profiles::document::{Block, BlockEnd, Conditions, Header};
use maud::{Markup, html};

use super::chart::{Across, COLOURS, Curve, Place, Point, Shape, TimeUnit, drawing};
use super::run_clock::{RunClock, TimedBlock};
use super::told::rejected_words;

/// All charts of a run, with a sentence where the device does not tell what one would draw.
pub(super) fn charts(header: &Header, clock: &RunClock<'_>) -> Markup {
    let [temperatures, clocks] = [temperatures(clock), clocks(clock)];
    html! {
        div.charts {
            @for processor in &header.processors { (sentinel(clock, &processor.name)) }
            (temperatures) (clocks) (battery(clock)) (disturbances(clock))
        }
        @if temperatures.0.is_empty() { p.note { "The device does not tell its temperature." } }
        @if clocks.0.is_empty() { p.note { "The device does not tell its clocks." } }
    }
}

/// One end of a block.
struct End<'a> {
    timed: &'a TimedBlock<'a>,
    told: &'a BlockEnd,
    is_after: bool,
}

/// Both ends of the blocks that `is_meant` picks and of which it is known when they were, in the order of time.
fn ends<'a>(clock: &'a RunClock<'_>, is_meant: impl Fn(&Block) -> bool) -> Vec<End<'a>> {
    let blocks = clock.blocks.iter();
    let meant = blocks.filter(|timed| timed.period.is_some() && is_meant(timed.block));
    let both = meant.flat_map(|timed| {
        let (before, after) = (&timed.block.before, &timed.block.after);
        [(before, false), (after, true)].map(|(told, is_after)| End {
            timed,
            told,
            is_after,
        })
    });
    both.collect()
}

/// The sentinel of a processor's blocks.
fn sentinel(clock: &RunClock<'_>, processor: &str) -> Markup {
    let ends = ends(clock, |block| block.processor == processor);
    let unit = TimeUnit::of(ends.iter().map(|end| end.told.sentinel.signed()));
    let number = |end: &End<'_>| unit.number(end.told.sentinel.signed());
    let curves = [
        curve("sentinel", 0, &ends, |end| {
            Some(point(number(end), end.told.sentinel.to_string()))
        }),
        Curve {
            shape: Shape::Points,
            ..curve("of a rejected block", 1, &ends, |end| {
                let why = end.timed.block.rejection?;
                Some(point(number(end), rejected_words(why).to_owned()))
            })
        },
    ];
    let title = format!("Sentinel on {}", Printable(processor));
    over_time(&title, clock, &ends, unit.name, &curves)
}

/// A temperature that a device may tell.
type Temperature = fn(&Conditions) -> Option<MilliCelsius>;

/// The temperatures that there are, by their names.
const TEMPERATURES: [(&str, Temperature); 4] = [
    ("hottest sensor", |told| told.temperature_millicelsius),
    ("skin", |told| told.skin_temperature_millicelsius),
    ("SoC", |told| told.soc_temperature_millicelsius),
    ("battery", |told| told.battery_temperature_millicelsius),
];

fn temperatures(clock: &RunClock<'_>) -> Markup {
    let ends = ends(clock, |_| true);
    let curves = TEMPERATURES.iter().enumerate().map(|(part, (name, told))| {
        curve(name, part, &ends, |end| {
            let temperature = told(&end.told.conditions)?;
            let celsius = temperature.as_millicelsius() as f64 / 1e3;
            Some(point(celsius, temperature.to_string()))
        })
    });
    let curves: Vec<Curve> = curves.collect();
    over_time("Temperature", clock, &ends, "°C", &curves)
}

/// Frequencies by the names of what has them.
type Frequencies = fn(&Conditions) -> &BTreeMap<String, u64>;

/// What is told of clocks, and what is said before their names.
const FREQUENCIES: [(&str, Frequencies); 2] = [
    ("", |told| &told.frequencies_khz),
    ("at most, ", |told| &told.frequency_caps_khz),
];

fn clocks(clock: &RunClock<'_>) -> Markup {
    let ends = ends(clock, |_| true);
    let named = FREQUENCIES.iter().flat_map(|(before, told)| {
        let names = ends
            .iter()
            .flat_map(|end| told(&end.told.conditions).keys());
        let names: BTreeSet<&String> = names.collect();
        names.into_iter().map(move |name| (*before, *told, name))
    });
    let curves = named.enumerate().map(|(place, (before, told, name))| {
        let name_with_kind = format!("{before}{}", Printable(name));
        curve(&name_with_kind, place % COLOURS, &ends, |end| {
            let megahertz = *told(&end.told.conditions).get(name)? as f64 / 1e3;
            Some(point(megahertz, format!("{megahertz:.0} MHz")))
        })
    });
    let curves: Vec<Curve> = curves.collect();
    over_time("Clocks", clock, &ends, "MHz", &curves)
}

fn battery(clock: &RunClock<'_>) -> Markup {
    let ends = ends(clock, |_| true);
    let full = curve("battery", 0, &ends, |end| {
        Some(percent(f64::from(end.told.conditions.battery_percent?)))
    });
    over_time("Battery", clock, &ends, "%", &[full])
}

/// What else ran during each block, told at its end.
fn disturbances(clock: &RunClock<'_>) -> Markup {
    let mut ends = ends(clock, |_| true);
    ends.retain(|end| end.is_after);
    let curves = [
        curve("samples on crowded cores", 0, &ends, |end| {
            let crowded = end.timed.block.disturbance?.crowded_samples as f64;
            Some(percent(crowded / end.timed.samples.max(1) as f64 * 100.0))
        }),
        curve("time stolen by the host", 1, &ends, |end| {
            Some(percent(end.timed.block.disturbance?.stolen_percent as f64))
        }),
    ];
    over_time("What else ran", clock, &ends, "%", &curves)
}

fn percent(value: f64) -> Point {
    point(value, format!("{value:.0} %"))
}

fn point(value: f64, words: String) -> Point {
    Point {
        value,
        interval: None,
        words,
    }
}

fn curve(
    name: &str,
    part: usize,
    ends: &[End<'_>],
    told: impl Fn(&End<'_>) -> Option<Point>,
) -> Curve {
    Curve {
        name: name.to_owned(),
        part,
        shape: Shape::Line,
        points: ends.iter().map(told).collect(),
    }
}

fn over_time(
    title: &str,
    clock: &RunClock<'_>,
    ends: &[End<'_>],
    unit: &str,
    curves: &[Curve],
) -> Markup {
    let passed = TimeUnit::of([clock.length.signed()]);
    let places = ends.iter().filter_map(|end| {
        let (begin, ended) = end.timed.period?;
        let (at, which) = match end.is_after {
            false => (begin, "before"),
            true => (ended, "after"),
        };
        let block = end.timed.block;
        Some(Place {
            at: passed.number(at.signed()),
            name: format!("{at}, {which} block {}.{}", block.order, block.number),
            link: None,
        })
    });
    let across = Across {
        name: format!("since the first sample, {}", passed.name),
        is_whole: false,
        ends: None,
        places: places.collect(),
    };
    let said = "the table of blocks below says more";
    drawing(title, said, &across, unit, curves)
}
