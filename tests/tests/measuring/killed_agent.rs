//! An agent that is killed in the middle of a run, again and again, loses no sample and doubles none.

use std::collections::BTreeSet;

use layerlab_farm::discovery::Choice;
use layerlab_farm::local::LocalLink;
use layerlab_profiles::Nanos;
use layerlab_tests::run::{Ended, measured, settings, whole};
use layerlab_tests::{agent_program, device};

/// Runs on the symmetric phone with noise; kills the agent whenever one of `kill_at` samples has come.
async fn killed(kill_at: &[u64]) -> Ended {
    let device = Choice::File(device("noisy"));
    let link = LocalLink::new(agent_program(), device).expect("a state folder");
    let mut kill_at: BTreeSet<u64> = kill_at.iter().copied().collect();
    let ended = whole(
        link,
        settings(10, Nanos::from_micros(10)),
        &mut |samples, link| {
            if kill_at.remove(&samples) {
                link.kill_agent();
            }
        },
    )
    .await;
    assert!(kill_at.is_empty(), "never came to kill at {kill_at:?}");
    ended
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_agent_changes_no_sample() {
    let undisturbed = killed(&[]).await;
    assert_eq!(
        undisturbed.connections, 2,
        "one to learn the processors, one to run"
    );
    let killed = killed(&[1, 2, 50, 200, 401, 700]).await;
    assert!(
        killed.connections > 3,
        "the agent was killed and connected to again, {} times",
        killed.connections
    );
    assert_eq!(measured(&killed.samples), measured(&undisturbed.samples));
}
