//! A measured link as plans are charged for it.

use layerlab_profiles::link::{Exchange, LinkDirection, LinkDocument, LinkFit, SmallExchanges};
use layerlab_profiles::{Bytes, Nanos};

use super::energy::Power;
use super::link::{Link, RadioPower, Wait};
use super::measured::{MeasuredNetwork, MeasuredSplitError};
use super::side_processor::no_less_than_nothing;

/// How many bytes the frames have that go up with a request to run layers on `cpu:all` for one tensor of four axes
/// (agent/edge/PROTOCOL.md).
const REQUEST_FRAMES: u64 = 91;

/// The same of the frames that come down with a tensor of two axes.
const ANSWER_FRAMES: u64 = 84;

/// What half of the frames have beside which L was measured: of an upload 20 bytes up and 52 down, of a download 28 and 72, of
/// which half belongs to each way of a request.
const TRANSFER_FRAMES: [u64; 2] = [24, 62];

/// The frames and bytes of an echo each way.
const ECHO_BYTES: [u64; 2] = [84, 136];

/// The link of a document, over which `network` is split, and whose radio costs nothing: energy is not measured.
///
/// Both directions were measured with a full round trip L each, as a request and its answer. A request that has layers run
/// uploads and downloads within one such round trip, so that either way is charged half of its own L, and what its frames have
/// beside the tensors is charged by the bandwidth. Of tensors that are smaller than all transfers, in proportion, half a round trip
/// is that of the smallest exchanges instead: of requests to run layers, less what the server's profile says of
/// these layers, but no less than that of echoes.
///
/// # Errors
/// When a direction is missing.
pub fn measured_link(
    document: &LinkDocument,
    network: &MeasuredNetwork,
) -> Result<Link, MeasuredSplitError> {
    let fit = |direction| {
        let row = document.rows.iter().find(|row| row.direction == direction);
        let row = row.ok_or_else(|| MeasuredSplitError::NoDirection {
            link: document.header.name.clone(),
            direction,
        })?;
        Ok::<_, MeasuredSplitError>(row.fit)
    };
    let fits = [fit(LinkDirection::Upload)?, fit(LinkDirection::Download)?];
    let bps = fits.map(|fit| fit.bandwidth_bps);
    let frames = [REQUEST_FRAMES, ANSWER_FRAMES];
    let large = [0, 1].map(|way| {
        let fit: LinkFit = fits[way];
        let longer = frames[way] - TRANSFER_FRAMES[way];
        half(no_less_than_nothing(fit.round_trip.value)) + carried(longer, bps[way])
    });
    let smallest = smallest_round_trip(document, network, bps);
    let waits = large.map(|large| match smallest {
        None => Wait::always(large),
        Some(round_trip) => Wait {
            smallest: half(round_trip),
            large,
            large_from: smallest_transfer(document),
        },
    });
    Ok(Link {
        upload_bps: bps[0],
        download_bps: bps[1],
        upload_wait: waits[0],
        download_wait: waits[1],
        radio: RadioPower {
            upload_microwatts_per_mbps: 0,
            download_microwatts_per_mbps: 0,
            base: Power::from_microwatts(0),
        },
    })
}

/// The size below which a transfer counts as small, in part: that of the smallest that were timed.
pub(super) fn smallest_transfer(document: &LinkDocument) -> Bytes {
    let sizes = document.header.method.transfer_bytes.iter();
    sizes.copied().min().unwrap_or(Bytes::ZERO)
}

/// What a request to run layers takes beside its tensors and its layers, where the tensors have next to no bytes; nothing where
/// nothing so small was timed.
fn smallest_round_trip(
    document: &LinkDocument,
    network: &MeasuredNetwork,
    bps: [u64; 2],
) -> Option<Nanos> {
    let bytes = |ways: [u64; 2]| carried(ways[0], bps[0]) + carried(ways[1], bps[1]);
    let echo = SmallExchanges::of(&document.samples, Exchange::Echo).duration();
    let by_echo = echo.map(|echo| {
        let frames = bytes([REQUEST_FRAMES, ANSWER_FRAMES]);
        echo + frames - bytes(ECHO_BYTES)
    });
    let requests = SmallExchanges::of(&document.samples, Exchange::Request);
    let by_request = (requests.duration())
        .zip(document.header.method.requests.as_ref())
        .and_then(|(took, method)| {
            let tensors = [method.request_bytes, method.answer_bytes];
            // Where the profile is of another model, by the server's own clock.
            let layers = network.server_time_of(method).or(requests.computed())?;
            Some(took - layers - bytes(tensors.map(Bytes::as_bytes)))
        });
    // The profile was made at another time, when the server may have been slower: no request takes less than an echo.
    by_request.max(by_echo)
}

/// Half of a time, to the nearest nanosecond.
fn half(time: Nanos) -> Nanos {
    Nanos::from_nanos(time.as_nanos().div_ceil(2))
}

/// How long a bandwidth in bit/s takes for so many bytes; nothing where there is none, which is refused elsewhere.
fn carried(bytes: u64, bandwidth_bps: u64) -> Nanos {
    let scaled_bits = u128::from(bytes) * 8_000_000_000;
    let nanos = scaled_bits.checked_div(u128::from(bandwidth_bps));
    Nanos::from_nanos(u64::try_from(nanos.unwrap_or(0)).unwrap_or(u64::MAX))
}
