//! A device's task: it works on the runs that the dispatcher assigns to the device, one after the other, and tells the
//! dispatcher what becomes of them.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::future::FutureExt;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::bench::{Assignment, Bench, Desk, LeaveAsked, News};
use crate::record::Spent;
use crate::state::StayOutcome;

/// A device stays open so long for the next run.
const LINGER: Duration = Duration::from_secs(10);

/// A device's task.
pub(super) struct DeviceTask {
    pub(super) assignments: mpsc::UnboundedSender<Assignment>,
    /// Tells the run on the device to leave it.
    pub(super) leave: watch::Sender<LeaveAsked>,
}

impl DeviceTask {
    /// Begins, among `tasks`, to work on what it is assigned.
    pub(super) fn begin<B: Bench>(bench: B, desk: Desk, tasks: &mut JoinSet<()>) -> DeviceTask {
        let (assignments, from) = mpsc::unbounded_channel();
        tasks.spawn(attend(bench, desk, from));
        DeviceTask {
            assignments,
            leave: watch::channel(LeaveAsked::No).0,
        }
    }
}

/// Works on one run after the other.
async fn attend<B: Bench>(
    bench: B,
    desk: Desk,
    mut assignments: mpsc::UnboundedReceiver<Assignment>,
) {
    let mut open_device = None;
    loop {
        let next = match timeout(LINGER, assignments.recv()).await {
            Ok(next) => next,
            Err(_) => {
                if let Some(open) = open_device.take() {
                    bench.close(open).await;
                }
                assignments.recv().await
            }
        };
        let Some(assignment) = next else { break };
        let working = AssertUnwindSafe(bench.work(&mut open_device, &assignment, &desk));
        let (outcome, spent) = working.catch_unwind().await.unwrap_or_else(|_| {
            let reason = "layerlab itself failed; its log says where".to_owned();
            (StayOutcome::DeviceFailed { reason }, Spent::default())
        });
        let (kept, is_over) = oneshot::channel();
        desk.tell(News::Left {
            outcome,
            spent,
            kept,
        })
        .await;
        if is_over.await.unwrap_or(false) {
            bench.forget(&mut open_device, &assignment).await;
        }
    }
    if let Some(open) = open_device {
        bench.close(open).await;
    }
}
