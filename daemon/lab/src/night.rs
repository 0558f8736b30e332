//! Sees when the lab has done what it could, and then writes the report of that.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::watch;
use tokio::time::timeout;

use super::notice::Notice;
use super::query;
use super::report::Report;
use crate::store::{Reader, StoreError};

/// The lab is at rest when no device has had a run for so long.
const REST: Duration = Duration::from_secs(60);

/// Where reports go.
#[derive(Clone, Debug)]
pub struct Reports {
    /// The lab's store.
    pub store: PathBuf,
    /// The folder of HTML files.
    pub folder: PathBuf,
    /// Whom to tell.
    pub notices: Vec<Notice>,
}

impl Reports {
    /// Writes a report each time that the lab comes to rest, for ever.
    pub async fn write(self, mut is_working: watch::Receiver<bool>) {
        loop {
            if is_working.wait_for(|&working| working).await.is_err() {
                return;
            }
            let since = Timestamp::now();
            // Until it has rested long enough; a dispatcher that is gone rests for good.
            loop {
                if is_working.wait_for(|&working| !working).await.is_err() {
                    return;
                }
                match timeout(REST, is_working.wait_for(|&working| working)).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(_)) => return,
                    Err(_) => break,
                }
            }
            match self.report(since).await {
                Ok(report) => self.publish(report).await,
                Err(error) => tracing::warn!(%error, "no report was written"),
            }
        }
    }

    async fn report(&self, since: Timestamp) -> Result<Report, StoreError> {
        let until = Timestamp::now();
        let reader = Reader::open(&self.store).await?;
        query::report(&reader, since, until).await
    }

    async fn publish(&self, mut report: Report) {
        report.read_profiles(true);
        let zone = TimeZone::system();
        match report.write_html(&self.folder, &zone) {
            Ok(file) => {
                tracing::info!(report = %file.display(), "{}", report.headline);
            }
            Err(error) => tracing::warn!(%error, "no report was written"),
        }
        for notice in &self.notices {
            notice.send_patiently(&report, &zone).await;
        }
    }
}
