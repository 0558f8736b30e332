//! Where moving data counts, what is moved is near before each step: what is copied in before it is copied, the copy before the
//! segment runs, and what the segment gave before that is copied out.
//!
//! In the whole network a layer finds its input near, for the layer before has just given it. And a tensor that was made layers
//! ago would take longer to be copied out than to be copied in, while the papers take moving to cost the same both ways.

use std::hint::black_box;

/// So many bytes come together, on all processors that matter here.
const CACHE_LINE: usize = 64;

/// Reads bytes, so that they are in the processor's caches.
pub(in crate::runtime) fn bring_near(bytes: &[u8]) {
    for line in bytes.chunks(CACHE_LINE) {
        black_box(line[0]);
    }
}
