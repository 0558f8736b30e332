//! How soon layerlab sees that a phone goes and comes, and how soon a run goes on: a phone whose cable is pulled again and
//! again, in the middle of a run.

use std::time::Instant;

use layerlab_profiles::Nanos;
use layerlab_tests::farm::Farm;
use layerlab_tests::in_real_time;
use layerlab_tests::proof::table::markdown;
use layerlab_tests::run::{settings, whole};
use layerlab_tests::watch::Watch;

use super::{median, quantile, seconds};

/// How often the cable is pulled, unless asked otherwise.
pub(crate) const TURNS: usize = 20;

/// The idle time before each inference, so that the run outlasts all turns.
const GAP: Nanos = Nanos::from_micros(20_000);

/// The cable is pulled so many samples after the run went on.
const SAMPLES: u64 = 20;

pub(crate) async fn cable(farm: &Farm, turns: usize) {
    let phone = farm.phone("P1");
    let mut watch = Watch::start(farm.layerlab(), &phone.address);
    watch.wait_for(&phone.serial, "ready");
    let (mut gone, mut back, mut on) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..turns {
        // Adbd is gone, and is back, when these return.
        phone.unplug();
        gone.push(seconds(|| watch.wait_for(&phone.serial, "offline")));
        phone.plug();
        back.push(seconds(|| watch.wait_for(&phone.serial, "ready")));
    }
    drop(watch);

    let provision = farm.provision(&in_real_time("noisy"));
    let link = farm.link(&phone, provision).await;
    let (mut plugged, mut connections, mut next) = (None, 0, SAMPLES);
    whole(link, settings(120, GAP), &mut |samples, link| {
        if link.connections() > connections {
            connections = link.connections();
            next = samples + SAMPLES;
            let since = plugged.take().map(|plugged: Instant| plugged.elapsed());
            on.extend(since.map(|since| since.as_secs_f64()));
        }
        if samples >= next && plugged.is_none() && on.len() < turns {
            phone.unplug();
            phone.plug();
            plugged = Some(Instant::now());
            next = u64::MAX;
        }
    })
    .await;

    println!(
        "A cable that is pulled {turns} times, and {} times in a run\n",
        on.len()
    );
    let row = |what: &str, times: &[f64]| {
        let numbers = [median(times), quantile(times, 0.0), quantile(times, 1.0)];
        let numbers = numbers.map(|seconds| format!("{seconds:.3}"));
        std::iter::once(what.to_owned()).chain(numbers).collect()
    };
    let rows: [Vec<String>; 3] = [
        row("from unplugged to seen to be gone", &gone),
        row("from plugged in to seen to be ready", &back),
        row("from plugged in to the run's next sample", &on),
    ];
    println!(
        "{}",
        markdown(&["what", "median s", "least s", "most s"], &rows)
    );
}
