//! Work with the database, apart from the tasks that wait for it.

use super::error::StoreError;

/// Has a blocking thread wait for `work`.
///
/// SQLite works in a thread of its own, and PostgreSQL in another process. The runtime knows nothing of either: while tasks
/// waited for it and nothing else was to be done, a paused clock would run ahead to the next deadline. Only blocking tasks
/// stop it.
pub(super) async fn apart<T: Send + 'static, F: Future<Output = T>>(
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<T, StoreError> {
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(work()))
        .await
        .map_err(|error| {
            tracing::error!("the lab's store: {error}");
            StoreError::Gone
        })
}
