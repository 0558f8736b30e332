//! Profiles with energies that no device drew: those of a published profile's layers at planted powers.

use std::path::Path;

use layerlab_profiles::document::{EnergyMeasurement, Profile};
use layerlab_profiles::energy::{EnergyWindow, Meter, MeterSource, SHORTEST_WINDOW, segments};
use layerlab_profiles::{NanoJoules, Nanos, Segment};
use layerlab_tests::root;

const VISITS: u32 = 3;

/// A published profile with what its layers would draw, were the CPU to draw so many mW and the NPU so many.
pub(super) fn publish(folder: &Path, milliwatts: [u64; 2]) {
    let profile = Profile::read(&root().join("profiles/published/oneplus7/vocnet-mini"));
    let profile = profile.expect("a published profile");
    let mut windows = Vec::new();
    let mut order = 0;
    for visit in 0..VISITS {
        for (processor, power) in profile.header.processors.iter().zip(milliwatts) {
            order += 1;
            let mut started = Nanos::from_millis(u64::from(order) * 100_000_000);
            let mut window = |segment: Option<Segment>, time: u64, power: u64| {
                let runs = SHORTEST_WINDOW.as_nanos() / time + 1;
                let duration = Nanos::from_nanos(runs * time);
                // 800 mW of the idle device, and a little that differs between visits.
                let power_uw = (800 + power) * 1_000 + u64::from(visit) * 700;
                windows.push(EnergyWindow {
                    processor: processor.name.clone(),
                    order,
                    segment,
                    started,
                    duration,
                    runs: segment.map_or(0, |_| runs),
                    energy: NanoJoules::from_nanojoules(
                        i64::try_from(power_uw * (duration.as_nanos() / 1_000) / 1_000)
                            .expect("small"),
                    ),
                    readings: 2,
                    scatter_uw: 0,
                    step_uw: None,
                });
                started = started + duration + Nanos::from_millis(1);
            };
            window(None, 1_000_000, 0);
            let supported = profile.supported(&processor.name);
            for segment in segments(processor.kind, &supported) {
                let mut rows = profile.segments.iter();
                let row =
                    rows.find(|row| row.processor == processor.name && row.segment == segment);
                let timed = row.map(|row| row.summary.median.as_nanos());
                // Those that the profile's design did not time are taken to take what their layers do, which is near enough.
                let layers = || {
                    let all = segment.first()..=segment.last();
                    let of = |layer| {
                        let mut rows = profile.segments.iter();
                        let row = rows.find(|row| {
                            row.processor == processor.name && row.segment == Segment::single(layer)
                        });
                        row.map_or(0, |row| row.summary.median.as_nanos())
                    };
                    all.map(of).sum()
                };
                window(
                    Some(segment),
                    timed.unwrap_or_else(layers),
                    power + u64::from(visit),
                );
                window(None, 1_000_000, 0);
            }
        }
    }
    let measurement = EnergyMeasurement {
        meter: Meter {
            source: MeterSource::Simulated,
            name: "gauge".to_owned(),
            settle_ns: Nanos::ZERO,
        },
        window_ns: SHORTEST_WINDOW,
        visits: VISITS,
    };
    let profile = profile
        .with_energy(measurement, windows)
        .expect("all windows");
    std::fs::create_dir(folder).expect("room");
    profile.write(folder).expect("room");
}
