//! What chance brings: jobs, and periods in which devices are away or hot.

use jiff::{SignedDuration, Timestamp};
use layerlab_lab::job::{JobSpec, ModelSpec, Selector};
use layerlab_lab::record::Device;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{DEVICES, NIGHTS};

pub(super) fn device(number: usize) -> Device {
    Device {
        name: format!("phone{number:02}"),
        serial: format!("phone{number:02}"),
        soc: Some(["kirin970", "sm8150", "tensor"][number % 3].to_owned()),
        abi: Some("arm64-v8a".to_owned()),
        android: Some(10 + number as u32 % 5),
        pools: if number < 6 {
            vec!["night".to_owned()]
        } else {
            Vec::new()
        },
        ..Device::default()
    }
}

pub(super) fn job(
    number: usize,
    start: Timestamp,
    random: &mut ChaCha8Rng,
) -> (Timestamp, JobSpec) {
    let hours = |hours: i64| SignedDuration::from_hours(hours);
    let at = start + SignedDuration::from_mins(random.random_range(0..NIGHTS * 24 * 60 - 12 * 60));
    let selector = match random.random_range(0..5) {
        0 => Selector {
            serial: Some(device(random.random_range(0..DEVICES)).name),
            ..Selector::default()
        },
        1 => Selector {
            soc: Some("Kirin970".to_owned()),
            ..Selector::default()
        },
        2 => Selector {
            android: Some(">= 12".parse().expect("a requirement")),
            ..Selector::default()
        },
        3 => Selector {
            pool: Some("night".to_owned()),
            each: random.random_bool(0.2),
            ..Selector::default()
        },
        _ => Selector {
            abi: Some("arm64-v8a".to_owned()),
            ..Selector::default()
        },
    };
    let windows = [
        "22:00-07:00 Europe/Berlin",
        "22:00-07:00 Europe/Berlin, weekdays",
        "01:30-03:30 Europe/Berlin",
        "always",
        "20:00-06:00 America/New_York, weekends",
    ];
    let model = |model: usize| ModelSpec {
        name: format!("model{model}"),
        sha256: format!("{number:04}{model}"),
        ..ModelSpec::default()
    };
    let models = random.random_range(1..4);
    let spec = JobSpec {
        name: format!("job{number}"),
        models: (0..models).map(model).collect(),
        devices: vec![selector],
        repeats: random.random_range(1..3),
        priority: *[0, 0, 0, 5, 10]
            .get(random.random_range(0..5))
            .expect("five"),
        not_before: random
            .random_bool(0.2)
            .then(|| at + hours(random.random_range(1..48))),
        deadline: random
            .random_bool(0.2)
            .then(|| at + hours(random.random_range(12..240))),
        window: Some(
            windows[random.random_range(0..windows.len())]
                .parse()
                .expect("a window"),
        ),
        ..JobSpec::default()
    };
    (at, spec)
}

/// Periods of `length` minutes, one about every `every` hours.
pub(super) fn periods(
    start: Timestamp,
    every: i64,
    length: std::ops::Range<i64>,
    random: &mut ChaCha8Rng,
) -> Vec<(Timestamp, Timestamp)> {
    let mut all = Vec::new();
    let mut at = start;
    let end = start + SignedDuration::from_hours(24 * NIGHTS);
    loop {
        at += SignedDuration::from_mins(random.random_range(60..every * 120));
        let until = at + SignedDuration::from_mins(random.random_range(length.clone()));
        if until > end {
            return all;
        }
        all.push((at, until));
        at = until;
    }
}
