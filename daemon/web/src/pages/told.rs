//! Times, progress and what was measured, in a page's words.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use layerlab_farm::adb::Printable;
use layerlab_lab::when::moment;
use layerlab_profiles::document::Header;
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
