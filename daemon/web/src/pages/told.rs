//! Times, progress and what was measured, in a page's words.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use layerlab_farm::adb::Printable;
use layerlab_lab::when::moment;
use layerlab_profiles::document::{Header, Rejected};
use maud::{Markup, html};

use super::layout::simulated_mark;

/// A point in time, by the clock of the lab's host.
pub(super) fn when(at: Timestamp) -> Markup {
    html! { time datetime=(at) { (when_words(at)) } }
}

/// The same where there is room for words alone.
pub(super) fn when_words(at: Timestamp) -> String {
    moment(at, Timestamp::now(), &TimeZone::system())
}

/// How many samples there are, and of how many if that is known.
pub(super) fn progress((done, of): (u64, Option<u64>)) -> Markup {
    html! {
        p.progress {
            @match of {
                Some(of) => {
                    progress value=(done) max=(of.max(1)) aria-label="Progress of the run" {}
                    span { (done) " of " (of) }
                }
                None => span { (done) " samples" },
            }
        }
    }
}

/// Of which model and which device a profile is.
pub(super) fn subject(header: &Header) -> Markup {
    // Simulated devices say so in their names, which the mark says as well.
    let device = header.device.name.trim_end_matches(" (simulated)");
    html! {
        (Printable(&header.model.name)) " on " (Printable(device)) (simulated_mark(header.simulated, header.emulated))
    }
}

/// Whether a block counts, and why not.
pub(super) fn counts(rejection: Option<Rejected>) -> Markup {
    html! { @match rejection { None => "yes", Some(why) => span.bad { "no: " (rejected_words(why)) } } }
}

/// Why a block does not count, in words.
pub(super) fn rejected_words(rejection: Rejected) -> &'static str {
    match rejection {
        Rejected::SentinelMoved => "the sentinel moved",
        Rejected::Throttling => "the device throttled",
        Rejected::ClockCapChanged => "a clock's cap changed",
        Rejected::OtherState => "the processor was in another state",
        Rejected::Disturbed => "something else ran",
    }
}
