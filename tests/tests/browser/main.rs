//! The lab's pages in a real browser: what people do there, and what they see. Where there is no browser these tests are skipped,
//! and fail in CI.

mod barriers;
mod charts;
mod journey;
mod watching;
