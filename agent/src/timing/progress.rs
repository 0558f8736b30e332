//! How far an order is, as its journal tells it to an agent that starts again.

use std::collections::HashSet;

use layerlab_profiles::Segment;
use layerlab_protocol::{Event, Rejection};

use crate::hygiene::End;

/// What the journal says of an order.
#[derive(Default)]
pub(super) struct Progress {
    /// Samples of accepted blocks and of the block in progress.
    pub(super) done: HashSet<u64>,
    /// The number of the next block.
    pub(super) next_block: u32,
    /// How often in a row blocks were rejected.
    pub(super) rejected: u32,
    /// The block that was in progress when the agent was killed.
    pub(super) open: Option<OpenBlock>,
}

pub(super) struct OpenBlock {
    pub(super) number: u32,
    pub(super) segments: Vec<Segment>,
    pub(super) start: End,
    pub(super) samples: HashSet<u64>,
}

impl Progress {
    pub(super) fn from_history(history: &[Event]) -> Progress {
        let mut progress = Progress::default();
        for event in history {
            match event {
                Event::BlockStarted {
                    block,
                    segments,
                    sentinel_ns,
                    conditions,
                } => {
                    progress.next_block = block + 1;
                    progress.open = Some(OpenBlock {
                        number: *block,
                        segments: segments.clone(),
                        start: End {
                            sentinel: *sentinel_ns,
                            runs: Vec::new(),
                            conditions: conditions.clone(),
                        },
                        samples: HashSet::new(),
                    });
                }
                Event::Sample { index, .. } => {
                    if let Some(open) = &mut progress.open {
                        open.samples.insert(*index);
                    }
                }
                Event::BlockEnded { rejection, .. } => {
                    let samples = progress.open.take().map(|open| open.samples);
                    match rejection {
                        None => {
                            progress.done.extend(samples.unwrap_or_default());
                            progress.rejected = 0;
                        }
                        Some(Rejection::Disturbed { .. }) => {}
                        Some(_) => progress.rejected += 1,
                    }
                }
                _ => {}
            }
        }
        if let Some(open) = &progress.open {
            progress.done.extend(&open.samples);
        }
        progress
    }
}
