//! Times, lengths and progress in a page's words.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use layerlab_lab::when::moment;
use maud::{Markup, html};

/// A point in time, by the clock of the lab's host.
pub(super) fn when(at: Timestamp) -> Markup {
    let words = moment(at, Timestamp::now(), &TimeZone::system());
    html! { time datetime=(at) { (words) } }
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
