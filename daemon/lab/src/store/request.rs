//! What is to be kept, and where the answer goes.

use tokio::sync::oneshot;

use super::error::StoreError;
use crate::record::RecordChange;

/// What one call wants kept.
#[derive(Debug)]
pub(super) struct KeepRequest {
    pub(super) changes: Vec<RecordChange>,
    pub(super) answer: oneshot::Sender<Result<(), StoreError>>,
}

/// The calls that share a transaction.
pub(super) struct Batch {
    pub(super) calls: Vec<Vec<RecordChange>>,
    pub(super) answers: Vec<oneshot::Sender<Result<(), StoreError>>>,
}

impl Batch {
    pub(super) fn of(requests: Vec<KeepRequest>) -> Batch {
        let (calls, answers) = requests
            .into_iter()
            .map(|request| (request.changes, request.answer))
            .unzip();
        Batch { calls, answers }
    }
}
