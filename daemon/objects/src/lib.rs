//! Files of a lab where all its hosts find them: in a bucket on an S3 server, or in a folder. A file lies under the SHA-256 of its
//! content, and a note that names files is written after them and once. Nothing is ever removed or changed there.
//!
//! Every call has a deadline, and says in one sentence what went wrong and what helps.

mod deadline;
mod error;
mod http;
mod objects;
mod place;
mod server;
mod variables;

pub use error::ObjectsError;
pub use objects::Objects;
pub use place::{ObjectsPlace, PlaceError};
pub use variables::{S3Variables, VariablesError};
