//! What a link carries over time while it is kept full.

use std::time::{Duration, Instant};

use layerlab_profiles::link::{LinkDirection, TraceInterval};
use layerlab_profiles::{Bytes, Nanos};

use crate::client::Client;
use crate::error::EdgeError;
use crate::message::Request;

/// The length of a trace's intervals.
pub const TRACE_INTERVAL: Duration = Duration::from_millis(100);

/// The bytes of one request of a trace: an interval of 1 Mbit/s has three.
const PIECE_BYTES: u64 = 4096;

impl Client {
    /// Keeps the link full in one `direction` for `lasting`, and counts what arrives in each interval. As many bytes as
    /// `window` are on their way at once: at least what the link carries in a round trip.
    ///
    /// # Errors
    /// When the server is gone, slow, or answers something else.
    pub fn trace(
        &mut self,
        direction: LinkDirection,
        window: u64,
        lasting: Duration,
    ) -> Result<Vec<TraceInterval>, EdgeError> {
        const DOING: &str = "recording a trace";
        let (request, payload) = match direction {
            LinkDirection::Upload => (Request::Sink { bytes: PIECE_BYTES }, PIECE_BYTES),
            LinkDirection::Download => (Request::Source { bytes: PIECE_BYTES }, 0),
        };
        let intervals = lasting.as_nanos().div_ceil(TRACE_INTERVAL.as_nanos());
        let mut arrived = vec![0_u64; usize::try_from(intervals).unwrap_or(0)];
        let most = window.div_ceil(PIECE_BYTES).max(2);
        let mut on_their_way = 0;
        // The trace begins when the first piece has come: what came before is no link at work.
        let mut began = None;
        let mut is_over = false;
        while !is_over || on_their_way > 0 {
            while !is_over && on_their_way < most {
                self.send(&request, payload, DOING)?;
                on_their_way += 1;
            }
            if direction == LinkDirection::Download {
                self.data(PIECE_BYTES, DOING)?;
            }
            self.done(Instant::now(), DOING)?;
            on_their_way -= 1;
            let now = Instant::now();
            let Some(began) = began else {
                began = Some(now);
                continue;
            };
            let interval = now.duration_since(began).as_nanos() / TRACE_INTERVAL.as_nanos();
            match usize::try_from(interval)
                .ok()
                .and_then(|it| arrived.get_mut(it))
            {
                Some(bytes) => *bytes += PIECE_BYTES,
                None => is_over = true,
            }
        }
        let length = Nanos::from(TRACE_INTERVAL);
        let interval = |(place, bytes): (u64, u64)| TraceInterval {
            direction,
            start: Nanos::from_nanos(place * length.as_nanos()),
            interval: length,
            bytes: Bytes::from_bytes(bytes),
        };
        Ok((0..).zip(arrived).map(interval).collect())
    }
}
