//! What a link between a phone and a server can carry: its bandwidth and its round trip, from timed exchanges.
//!
//! [`fit`] is the arithmetic, [`LinkDocument`] what is published: `link.json` and three tables beside it.
//! docs/edge.md says what is measured, and every field and column.

mod document;
mod files;
mod findings;
mod fit;
mod header;
mod kind;
mod line;
mod phone;
mod records;
mod row;
mod sample;

pub use document::{LINK_JSON, LinkDocument};
pub use findings::{check_link, check_link_directory};
pub use fit::{FitError, LinkFit, Moved, UNSTEADY_ABOVE_PERCENT, fit, half_width_ns};
pub use header::{
    LINK_FORMAT, LINK_VERSION, LinkHeader, LinkMethod, LinkProvenance, LinkShape, MeasuredFrom,
};
pub use kind::{BadLinkName, LinkDirection, LinkKind, link_name};
pub use line::TimedTransfer;
pub use phone::{LinkPhone, OtherKind, PhoneAttached};
pub use row::{LinkRow, transfers};
pub use sample::{Exchange, LinkSample, ServerTimes, TraceInterval};
