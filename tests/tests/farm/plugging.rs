//! Phones that are plugged in and pulled out, as people who watch see them. How soon they see it, `farm-bench cable` says.

use layerlab_tests::wait::wait_for;
use layerlab_tests::watch::Watch;

use super::Disguised;

/// The server itself calls a network phone only now and then: layerlab has it call again and again.
#[test]
fn a_phone_is_seen_to_go_and_is_called_until_it_is_back() {
    let Some(lab) = Disguised::new("P1") else {
        return;
    };
    let name = lab.name();
    let mut watch = Watch::start(lab.layerlab(), &lab.phone.address);
    watch.wait_for(&name, "ready");
    lab.phone.unplug();
    watch.wait_for(&name, "offline");
    let before = lab.interposer.calls();
    let calls = || lab.interposer.calls() - before;
    wait_for("three calls", || calls() >= 3, || calls().to_string());
    lab.phone.plug();
    watch.wait_for(&name, "ready");
}
