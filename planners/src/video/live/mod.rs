//! Deciding about frames as they come, on the phone itself: the policies of [`super::replay`], fed by what happens instead of by a
//! simulator.
//!
//! [`LiveVideo`] is told that a frame is there, that the phone or the server has answered one, and when it asked to be woken; it
//! says what to do, at once. It has no clock and does nothing itself. [`LiveSettings`] is all that it must know beforehand.

mod link;
mod settings;
mod video;

pub use settings::LiveSettings;
pub use video::{LiveAnswer, LiveError, LiveVideo};
