//! A made-up fleet: profiles of many phones and nights, each drawn from one profile, for what reads many of them. No phone was
//! measured; which one is odd, and which layer became slower, is planted.

use jiff::{SignedDuration, Timestamp};
use layerlab_profiles::document::{Clock, LayerTimeRow, Phone, Profile, Sample};
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Nanos, SignedNanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How much slower the last phone is than the first.
const ODD: f64 = 1.25;

/// The layer that takes longer in the last night, on every accelerator, and by how much.
const SLOWED: (u32, f64) = (5, 1.2);

/// What a sample deviates by, at most, as a share.
const NOISE: f64 = 0.02;

/// How many phones are measured in how many nights.
#[derive(Clone, Copy, Debug)]
pub struct Fleet {
    /// How many phones there are.
    pub phones: u32,
    /// In how many nights each of them is measured.
    pub nights: u32,
    /// How many days lie between two nights.
    pub days_between: u32,
}

impl Fleet {
    /// The profile of phone `phone` in night `night`, both counted from 0, in the shape of `template`.
    pub fn profile(&self, template: &Profile, phone: u32, night: u32) -> Profile {
        let mut random = ChaCha8Rng::seed_from_u64(u64::from(phone) << 32 | u64::from(night));
        let is_odd = phone + 1 == self.phones;
        let pace = if is_odd {
            ODD
        } else {
            1.0 + 0.01 * f64::from(phone)
        };
        let pace = pace * (1.0 + 0.002 * f64::from(night));
        let is_slowed = night + 1 == self.nights;
        let slowed = |layer: u32, processor: &str| {
            let accelerates = processor != "cpu";
            if is_slowed && accelerates && layer == SLOWED.0 {
                SLOWED.1
            } else {
                1.0
            }
        };

        let mut profile = template.clone();
        self.describe(&mut profile, phone, night);
        for row in &mut profile.times {
            let pace = pace * slowed(row.layer, &row.processor);
            scale_layer(row, pace);
        }
        for row in &mut profile.segments {
            let summary = &mut row.summary;
            let (low, high) = summary.median_ci95.unzip();
            summary.median = scaled(summary.median, pace);
            summary.median_ci95 = low
                .zip(high)
                .map(|(low, high)| (scaled(low, pace), scaled(high, pace)));
            summary.min = scaled(summary.min, pace);
            summary.p5 = scaled(summary.p5, pace);
            summary.p95 = scaled(summary.p95, pace);
            summary.max = scaled(summary.max, pace);
        }
        for tested in profile
            .additivity
            .iter_mut()
            .flat_map(|one| &mut one.segments)
        {
            let predicted = [
                Some(&mut tested.predicted_ns),
                tested.predicted_ci95_low_ns.as_mut(),
                tested.predicted_ci95_high_ns.as_mut(),
            ];
            for nanos in predicted.into_iter().flatten() {
                *nanos = scaled_difference(*nanos, pace);
            }
        }
        let up_since = Nanos::from_nanos(random.random_range(0..1_000_000_000_000));
        for Sample {
            started, duration, ..
        } in &mut profile.samples
        {
            let noise = random.random_range(1.0 - NOISE..1.0 + NOISE);
            *started = *started + up_since;
            *duration = scaled(*duration, pace * noise);
        }
        profile
    }

    fn describe(&self, profile: &mut Profile, phone: u32, night: u32) {
        let first: Timestamp = "2026-09-20T22:00:00Z".parse().expect("a time");
        let days = i64::from(night * self.days_between);
        let started =
            first + SignedDuration::from_hours(24 * days) + SignedDuration::from_mins(phone.into());
        let header = &mut profile.header;
        header.simulated = false;
        header.device.simulated = false;
        header.device.clock = Clock::Monotonic;
        header.device.name = format!("Made-up phone {phone}");
        for processor in &mut header.processors {
            processor.runtime = "made-up".to_owned();
        }
        let provenance = &mut header.provenance;
        provenance.run = format!("lab-f1ee7-{}-1-times", night * self.phones + phone + 1);
        provenance.started_at = started.to_string();
        provenance.finished_at = (started + SignedDuration::from_mins(9)).to_string();
        provenance.phone = Some(Phone {
            serial: format!("MADE-UP-{phone:04}"),
            model: Some("Made-up".to_owned()),
            soc: Some("MU1".to_owned()),
            android: Some("15".to_owned()),
            ..Phone::default()
        });
    }
}

fn scale_layer(row: &mut LayerTimeRow, pace: f64) {
    let time = &mut row.time;
    let estimates = [
        Some(&mut time.compute),
        time.to_processor.as_mut(),
        time.from_processor.as_mut(),
    ];
    for Estimate { value, ci95 } in estimates.into_iter().flatten() {
        *value = scaled_difference(*value, pace);
        *ci95 =
            ci95.map(|(low, high)| (scaled_difference(low, pace), scaled_difference(high, pace)));
    }
}

fn scaled(nanos: Nanos, pace: f64) -> Nanos {
    Nanos::from_nanos((nanos.as_nanos() as f64 * pace).round() as u64)
}

fn scaled_difference(nanos: SignedNanos, pace: f64) -> SignedNanos {
    SignedNanos::from_nanos((nanos.as_nanos() as f64 * pace).round() as i64)
}
