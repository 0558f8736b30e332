//! What it costs the phone to move bytes over a link.

use layerlab_profiles::{Bytes, Nanos};

use super::energy::{Energy, Power};
use super::error::SplitError;
use super::side::Direction;

/// The power of the phone's radio while it transfers: P = α t + β, with t the throughput (jointdnn Eq. 21, Table 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadioPower {
    /// α_u, in microwatts for each Mbps (10^6 bit/s) of upload.
    pub upload_microwatts_per_mbps: u64,
    /// α_d, in microwatts for each Mbps of download.
    pub download_microwatts_per_mbps: u64,
    /// β.
    pub base: Power,
}

/// A link between a phone and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Upload bandwidth, in bit/s.
    pub upload_bps: u64,
    /// Download bandwidth, in bit/s.
    pub download_bps: u64,
    /// What an upload takes beside its bytes; 0 in the paper.
    pub upload_wait: Wait,
    /// What a download takes beside its bytes; 0 in the paper.
    pub download_wait: Wait,
    /// What the radio draws.
    pub radio: RadioPower,
}

/// What a transfer takes beside its bytes, which may be another time where there are few.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Where there are no bytes.
    pub smallest: Nanos,
    /// Where there are `large_from` or more. Of fewer it lies between the two, in proportion to the bytes.
    pub large: Nanos,
    /// From how many bytes on it stays the same.
    pub large_from: Bytes,
}

impl Wait {
    /// No time at all.
    pub const ZERO: Wait = Wait::always(Nanos::ZERO);

    /// The same time whatever the bytes.
    pub const fn always(time: Nanos) -> Wait {
        Wait {
            smallest: time,
            large: time,
            large_from: Bytes::ZERO,
        }
    }

    /// What it is for so many bytes, to the nearest nanosecond.
    pub fn of(&self, bytes: Bytes) -> Nanos {
        if bytes >= self.large_from {
            return self.large;
        }
        let (all, here) = (
            u128::from(self.large_from.as_bytes()),
            u128::from(bytes.as_bytes()),
        );
        let weighted = u128::from(self.smallest.as_nanos()) * (all - here)
            + u128::from(self.large.as_nanos()) * here;
        // No more than the longer of the two, which has 64 bits.
        Nanos::from_nanos(u64::try_from((weighted + all / 2) / all).unwrap_or(u64::MAX))
    }
}

/// The mobile networks of jointdnn Table 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaperLink {
    /// 3G.
    ThreeG,
    /// 4G.
    FourG,
    /// Wi-Fi.
    WiFi,
}

impl PaperLink {
    /// All of them, in the table's order.
    pub const ALL: [PaperLink; 3] = [PaperLink::ThreeG, PaperLink::FourG, PaperLink::WiFi];

    /// The table's column.
    pub const fn link(self) -> Link {
        let (bps, microwatts) = match self {
            PaperLink::ThreeG => ([1_100_000, 2_027_500], [868_980, 122_120, 817_880]),
            PaperLink::FourG => ([5_850_000, 13_760_000], [438_390, 51_970, 1_288_040]),
            PaperLink::WiFi => ([18_880_000, 54_970_000], [283_170, 137_010, 132_860]),
        };
        Link {
            upload_bps: bps[0],
            download_bps: bps[1],
            upload_wait: Wait::ZERO,
            download_wait: Wait::ZERO,
            radio: RadioPower {
                upload_microwatts_per_mbps: microwatts[0],
                download_microwatts_per_mbps: microwatts[1],
                base: Power::from_microwatts(microwatts[2]),
            },
        }
    }
}

impl Link {
    /// How fast it is one way, in bit/s.
    pub const fn bandwidth_bps(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Upload => self.upload_bps,
            Direction::Download => self.download_bps,
        }
    }

    /// What a transfer of so many bytes takes beside them.
    pub fn wait(&self, direction: Direction, bytes: Bytes) -> Nanos {
        match direction {
            Direction::Upload => self.upload_wait.of(bytes),
            Direction::Download => self.download_wait.of(bytes),
        }
    }

    /// What the phone draws while it transfers at full bandwidth (jointdnn Eq. 21), to the nearest microwatt;
    /// saturates.
    pub fn power(&self, direction: Direction) -> Power {
        let slope = match direction {
            Direction::Upload => self.radio.upload_microwatts_per_mbps,
            Direction::Download => self.radio.download_microwatts_per_mbps,
        };
        let bandwidth = u128::from(self.bandwidth_bps(direction));
        let rising = (u128::from(slope) * bandwidth + 500_000) / 1_000_000;
        let base = self.radio.base.as_microwatts();
        let rising = u64::try_from(rising).unwrap_or(u64::MAX);
        Power::from_microwatts(rising.saturating_add(base))
    }

    /// What one transfer costs: its wait and S/B, to the nearest nanosecond, and the radio's power for S/B with `idle` power
    /// for the wait.
    ///
    /// # Errors
    /// No bandwidth that way.
    pub fn transfer(
        &self,
        direction: Direction,
        bytes: Bytes,
        idle: Power,
    ) -> Result<(Nanos, Energy), SplitError> {
        let bandwidth = u128::from(self.bandwidth_bps(direction));
        if bandwidth == 0 {
            return Err(SplitError::NoBandwidth(direction));
        }
        let scaled_bits = u128::from(bytes.as_bytes()) * 8_000_000_000;
        let nanos = (scaled_bits + bandwidth / 2) / bandwidth;
        let sending = Nanos::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let wait = self.wait(direction, bytes);
        let energy = self.power(direction).over(sending) + idle.over(wait);
        Ok((wait + sending, energy))
    }
}
