//! Tells people how the lab fared, where the configuration says whom: somebody's URL, and mail through this host's `sendmail`.
//! Nothing of the lab depends on it.

mod mail;
mod slack;

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::config::{ReportConfig, WebhookFormat};
use crate::report::Report;
use crate::webhook;

pub use mail::Mail;

/// Before each further try.
const PAUSES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];

/// Where a report goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// It is posted.
    Webhook {
        /// Where to; it may hold a secret.
        url: String,
        /// As what.
        format: WebhookFormat,
    },
    /// It is mailed.
    Mail(Mail),
}

impl Notice {
    /// All that the configuration asks for.
    pub fn all(config: &ReportConfig) -> Vec<Notice> {
        let webhook = config.webhook.clone().map(|url| Notice::Webhook {
            url,
            format: config.webhook_format,
        });
        let mail = (!config.mail_to.is_empty()).then(|| {
            Notice::Mail(Mail {
                to: config.mail_to.clone(),
                from: config.mail_from.clone(),
            })
        });
        webhook.into_iter().chain(mail).collect()
    }

    /// Whom it tells, without what may be secret.
    pub fn whom(&self) -> String {
        match self {
            Notice::Webhook { url, .. } => webhook::without_secrets(url),
            Notice::Mail(mail) => mail.to.join(", "),
        }
    }

    /// Tells of `report` once, with times in `zone`.
    ///
    /// # Errors
    /// Why nobody was told, in one sentence that holds no secret.
    pub async fn send(&self, report: &Report, zone: &TimeZone) -> Result<(), String> {
        match self {
            Notice::Webhook { url, format } => {
                let body = match format {
                    WebhookFormat::Json => serde_json::to_vec(report),
                    WebhookFormat::Slack => serde_json::to_vec(&slack::message(report, zone)),
                };
                let body = body.map_err(|error| error.to_string())?;
                webhook::post(url, &body).await
            }
            Notice::Mail(mail) => mail.send(report, Timestamp::now(), zone).await,
        }
    }

    /// The same; what goes wrong is logged, and tried twice again.
    pub async fn send_patiently(&self, report: &Report, zone: &TimeZone) {
        let mut pauses = PAUSES.into_iter();
        while let Err(reason) = self.send(report, zone).await {
            let Some(pause) = pauses.next() else {
                tracing::warn!(whom = self.whom(), "the summary was not sent: {reason}");
                return;
            };
            tracing::info!(
                whom = self.whom(),
                "the summary was not sent, to be tried again: {reason}"
            );
            tokio::time::sleep(pause).await;
        }
    }
}
