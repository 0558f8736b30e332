//! One question to an adb server, with its deadline.

use std::time::Duration;

use super::endpoint::Endpoint;
use super::error::AdbError;
use super::fault::Fault;
use super::wire::{Wire, within};

/// How long a healthy server takes at most for what it knows itself.
pub(super) const ANSWER: Duration = Duration::from_secs(3);

/// The version of the protocol of the server at `at`.
pub(super) async fn version(at: &Endpoint) -> Result<u32, AdbError> {
    let text = ask(at, "host:version", ANSWER).await?;
    u32::from_str_radix(&text, 16).map_err(|_| AdbError::Lost {
        subject: format!("the adb server at {at}"),
        reason: "its version is no number".to_owned(),
        fault: Fault::Server,
    })
}

/// What the server at `at` answers to `request`.
pub(super) async fn ask(
    at: &Endpoint,
    request: &str,
    deadline: Duration,
) -> Result<String, AdbError> {
    let subject = format!("the adb server at {at}");
    within(&subject, "answer", Fault::Server, deadline, async {
        let mut wire = Wire::open(at).await?;
        wire.request(request, "do this").await?;
        wire.text().await
    })
    .await
}
