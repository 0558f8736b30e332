//! What is seen of the device while a block is measured.

use crate::device::ProcessorTime;

/// What was seen since a block began.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) samples: u64,
    /// How many of them began without cores of their own; `None` until the device told of any.
    pub(super) crowded: Option<u64>,
    pub(super) began: Option<ProcessorTime>,
}

impl Watch {
    /// The next inference begins, which gives so many samples, with or without cores of its own.
    pub(super) fn saw(&mut self, has_cores: Option<bool>, samples: usize) {
        let samples = samples as u64;
        self.samples += samples;
        if let Some(has_cores) = has_cores {
            let crowded = if has_cores { 0 } else { samples };
            *self.crowded.get_or_insert(0) += crowded;
        }
    }
}
