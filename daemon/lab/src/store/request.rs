//! What is asked of the writer, and where its answer goes.

use tokio::sync::oneshot;

use super::error::StoreError;
use crate::record::RecordChange;

/// What one call wants kept.
#[derive(Debug)]
pub(super) struct KeepRequest {
    pub(super) changes: Vec<RecordChange>,
    pub(super) answer: oneshot::Sender<Result<(), StoreError>>,
}
