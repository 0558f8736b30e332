//! Rows as they lie on disk.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{
    Exchange, LinkDirection, LinkFit, LinkHeader, LinkKind, LinkRow, LinkSample, ServerTimes,
    TraceInterval,
};
use crate::document::{Origin, RowError, Table};
use crate::summary::Estimate;
use crate::units::{Bytes, Nanos, SignedNanos};

pub(super) const LINKS: Table = Table {
    file: "links.csv",
    columns: &[
        "link",
        "kind",
        "direction",
        "bandwidth_bps",
        "bandwidth_ci95_low_bps",
        "bandwidth_ci95_high_bps",
        "rtt_ns",
        "rtt_ci95_low_ns",
        "rtt_ci95_high_ns",
        "echo_ns",
        "echo_ci95_low_ns",
        "echo_ci95_high_ns",
        "residual_percent",
        "unsteady",
        "samples",
        "origin",
    ],
};

pub(super) const SAMPLES: Table = Table {
    file: "link_samples.csv",
    columns: &[
        "link",
        "exchange",
        "index",
        "connection",
        "bytes",
        "started_ns",
        "duration_ns",
        "server_receive_ns",
        "server_queue_ns",
        "server_compute_ns",
        "server_send_ns",
        "origin",
    ],
};

pub(super) const TRACES: Table = Table {
    file: "link_traces.csv",
    columns: &[
        "link",
        "direction",
        "start_ns",
        "interval_ns",
        "bytes",
        "origin",
    ],
};

/// What each row says of the whole document: its link's name, and where its numbers come from.
pub(super) struct Says {
    pub(super) link: String,
    pub(super) origin: Origin,
}

#[derive(Serialize, Deserialize)]
pub(super) struct LinkRecord<'a> {
    link: Cow<'a, str>,
    pub(super) kind: LinkKind,
    direction: LinkDirection,
    bandwidth_bps: u64,
    bandwidth_ci95_low_bps: Option<u64>,
    bandwidth_ci95_high_bps: Option<u64>,
    rtt_ns: SignedNanos,
    rtt_ci95_low_ns: Option<SignedNanos>,
    rtt_ci95_high_ns: Option<SignedNanos>,
    echo_ns: SignedNanos,
    echo_ci95_low_ns: Option<SignedNanos>,
    echo_ci95_high_ns: Option<SignedNanos>,
    residual_percent: f64,
    pub(super) unsteady: bool,
    samples: u64,
    origin: Origin,
}

impl<'a> From<(&'a LinkRow, &'a LinkHeader)> for LinkRecord<'a> {
    fn from((row, header): (&'a LinkRow, &'a LinkHeader)) -> Self {
        let fit = row.fit;
        LinkRecord {
            link: Cow::Borrowed(&header.name),
            kind: header.kind,
            direction: row.direction,
            bandwidth_bps: fit.bandwidth_bps,
            bandwidth_ci95_low_bps: fit.bandwidth_ci95_bps.map(|(low, _)| low),
            bandwidth_ci95_high_bps: fit.bandwidth_ci95_bps.map(|(_, high)| high),
            rtt_ns: fit.round_trip.value,
            rtt_ci95_low_ns: fit.round_trip.ci95.map(|(low, _)| low),
            rtt_ci95_high_ns: fit.round_trip.ci95.map(|(_, high)| high),
            echo_ns: row.echo.value,
            echo_ci95_low_ns: row.echo.ci95.map(|(low, _)| low),
            echo_ci95_high_ns: row.echo.ci95.map(|(_, high)| high),
            residual_percent: fit.residual_percent,
            unsteady: fit.is_unsteady(),
            samples: row.samples,
            origin: header.origin_of_rows(),
        }
    }
}

impl LinkRecord<'_> {
    pub(super) fn says(&self) -> Says {
        Says {
            link: self.link.to_string(),
            origin: self.origin,
        }
    }
}

impl TryFrom<LinkRecord<'_>> for LinkRow {
    type Error = RowError;
    fn try_from(row: LinkRecord<'_>) -> Result<Self, RowError> {
        let fit = LinkFit {
            bandwidth_bps: row.bandwidth_bps,
            bandwidth_ci95_bps: both(
                "bandwidth",
                row.bandwidth_ci95_low_bps,
                row.bandwidth_ci95_high_bps,
            )?,
            round_trip: Estimate {
                value: row.rtt_ns,
                ci95: both("rtt", row.rtt_ci95_low_ns, row.rtt_ci95_high_ns)?,
            },
            residual_percent: row.residual_percent,
        };
        if row.unsteady != fit.is_unsteady() {
            return Err(RowError::Word(format!(
                "column unsteady is {}, which does not follow from residual_percent",
                row.unsteady
            )));
        }
        Ok(LinkRow {
            direction: row.direction,
            fit,
            echo: Estimate {
                value: row.echo_ns,
                ci95: both("echo", row.echo_ci95_low_ns, row.echo_ci95_high_ns)?,
            },
            samples: row.samples,
        })
    }
}

fn both<T>(
    column: &'static str,
    low: Option<T>,
    high: Option<T>,
) -> Result<Option<(T, T)>, RowError> {
    match (low, high) {
        (None, None) => Ok(None),
        (Some(low), Some(high)) => Ok(Some((low, high))),
        _ => Err(RowError::Word(format!(
            "columns {column}_ci95_*: an interval needs both ends"
        ))),
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct SampleRecord<'a> {
    link: Cow<'a, str>,
    exchange: Exchange,
    index: u32,
    connection: u32,
    bytes: Bytes,
    started_ns: Nanos,
    duration_ns: Nanos,
    server_receive_ns: Nanos,
    server_queue_ns: Nanos,
    server_compute_ns: Nanos,
    server_send_ns: Nanos,
    origin: Origin,
}

impl<'a> From<(&'a LinkSample, &'a LinkHeader)> for SampleRecord<'a> {
    fn from((sample, header): (&'a LinkSample, &'a LinkHeader)) -> Self {
        SampleRecord {
            link: Cow::Borrowed(&header.name),
            exchange: sample.exchange,
            index: sample.index,
            connection: sample.connection,
            bytes: sample.bytes,
            started_ns: sample.started,
            duration_ns: sample.duration,
            server_receive_ns: sample.server.receive,
            server_queue_ns: sample.server.queue,
            server_compute_ns: sample.server.compute,
            server_send_ns: sample.server.send,
            origin: header.origin_of_samples(),
        }
    }
}

impl SampleRecord<'_> {
    pub(super) fn says(&self) -> Says {
        Says {
            link: self.link.to_string(),
            origin: self.origin,
        }
    }
}

impl From<SampleRecord<'_>> for LinkSample {
    fn from(row: SampleRecord<'_>) -> Self {
        LinkSample {
            exchange: row.exchange,
            index: row.index,
            connection: row.connection,
            bytes: row.bytes,
            started: row.started_ns,
            duration: row.duration_ns,
            server: ServerTimes {
                receive: row.server_receive_ns,
                queue: row.server_queue_ns,
                compute: row.server_compute_ns,
                send: row.server_send_ns,
            },
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct TraceRecord<'a> {
    link: Cow<'a, str>,
    direction: LinkDirection,
    start_ns: Nanos,
    interval_ns: Nanos,
    bytes: Bytes,
    origin: Origin,
}

impl<'a> From<(&'a TraceInterval, &'a LinkHeader)> for TraceRecord<'a> {
    fn from((trace, header): (&'a TraceInterval, &'a LinkHeader)) -> Self {
        TraceRecord {
            link: Cow::Borrowed(&header.name),
            direction: trace.direction,
            start_ns: trace.start,
            interval_ns: trace.interval,
            bytes: trace.bytes,
            origin: header.origin_of_samples(),
        }
    }
}

impl TraceRecord<'_> {
    pub(super) fn says(&self) -> Says {
        Says {
            link: self.link.to_string(),
            origin: self.origin,
        }
    }
}

impl From<TraceRecord<'_>> for TraceInterval {
    fn from(row: TraceRecord<'_>) -> Self {
        TraceInterval {
            direction: row.direction,
            start: row.start_ns,
            interval: row.interval_ns,
            bytes: row.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::assert_columns_are_fields;

    #[test]
    fn the_columns_are_the_fields() {
        let link = LinkRecord {
            link: "lab".into(),
            kind: LinkKind::Wifi,
            direction: LinkDirection::Upload,
            bandwidth_bps: 1,
            bandwidth_ci95_low_bps: None,
            bandwidth_ci95_high_bps: None,
            rtt_ns: SignedNanos::ZERO,
            rtt_ci95_low_ns: None,
            rtt_ci95_high_ns: None,
            echo_ns: SignedNanos::ZERO,
            echo_ci95_low_ns: None,
            echo_ci95_high_ns: None,
            residual_percent: 0.0,
            unsteady: false,
            samples: 6,
            origin: Origin::Derived,
        };
        assert_columns_are_fields(LINKS, link);
        let sample = SampleRecord {
            link: "lab".into(),
            exchange: Exchange::Echo,
            index: 0,
            connection: 0,
            bytes: Bytes::ZERO,
            started_ns: Nanos::ZERO,
            duration_ns: Nanos::ZERO,
            server_receive_ns: Nanos::ZERO,
            server_queue_ns: Nanos::ZERO,
            server_compute_ns: Nanos::ZERO,
            server_send_ns: Nanos::ZERO,
            origin: Origin::Measured,
        };
        assert_columns_are_fields(SAMPLES, sample);
        let trace = TraceRecord {
            link: "lab".into(),
            direction: LinkDirection::Upload,
            start_ns: Nanos::ZERO,
            interval_ns: Nanos::ZERO,
            bytes: Bytes::ZERO,
            origin: Origin::Measured,
        };
        assert_columns_are_fields(TRACES, trace);
    }
}
