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
mod moved;
mod phone;
mod records;
mod row;
mod sample;
mod small;

pub use document::{LINK_JSON, LinkDocument};
pub use findings::{check_link, check_link_directory};
pub use fit::{FitError, LinkFit, UNSTEADY_ABOVE_PERCENT, fit};
pub use header::{
    LINK_FORMAT, LINK_VERSION, LinkHeader, LinkMethod, LinkProvenance, LinkShape, MeasuredFrom,
    RequestMethod,
};
pub use kind::{BadLinkName, LinkDirection, LinkKind, link_name};
pub use line::TimedTransfer;
pub use moved::{Moved, MovedOneWay, half_width_ns};
pub use phone::{LinkPhone, OtherKind, PhoneAttached};
pub use row::{LinkRow, transfers};
pub use sample::{Exchange, LinkSample, ServerTimes, TraceInterval};
pub use small::{SmallExchanges, small_exchanges};
