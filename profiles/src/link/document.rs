//! One measured link, as it is published.

use super::{FitError, LinkHeader, LinkRow, LinkSample, TraceInterval};

/// The file that says what the tables beside it are.
pub const LINK_JSON: &str = "link.json";

/// One measured link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkDocument {
    /// `link.json`: which link, how, from where and when.
    pub header: LinkHeader,
    /// `links.csv`: what each direction carries.
    pub rows: Vec<LinkRow>,
    /// `link_samples.csv`: every exchange that was timed, in the order in which they were.
    pub samples: Vec<LinkSample>,
    /// `link_traces.csv`: what the saturated link carried in each interval, where that was recorded.
    pub traces: Vec<TraceInterval>,
}

impl LinkDocument {
    /// The document of what was measured.
    ///
    /// # Errors
    /// When the samples say nothing about the link.
    pub fn new(
        header: LinkHeader,
        samples: Vec<LinkSample>,
        traces: Vec<TraceInterval>,
    ) -> Result<LinkDocument, FitError> {
        Ok(LinkDocument {
            rows: LinkRow::all(&samples, header.method.connections)?,
            header,
            samples,
            traces,
        })
    }
}
