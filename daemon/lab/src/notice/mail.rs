//! A report by mail, through the `sendmail` that every mail system for Unix brings: it knows how mail leaves this host.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::report::Report;

/// How long `sendmail` may take. It queues what it cannot deliver.
const DEADLINE: Duration = Duration::from_secs(60);

/// The program, and where it lies if not on the PATH, as on many hosts for all users but root.
const SENDMAIL: &str = "sendmail";
const SENDMAIL_FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/lib"];

/// The bytes of a subject in one encoded word, which may have 75 characters: 45 make 60 of base64.
const SUBJECT_BYTES: usize = 45;

/// Whom to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// The addresses, of which there is one at least.
    pub to: Vec<String>,
    /// The sender; that of this host's user if there is none.
    pub from: Option<String>,
}

impl Mail {
    /// Gives the report to `sendmail`.
    pub(super) async fn send(
        &self,
        report: &Report,
        now: Timestamp,
        zone: &TimeZone,
    ) -> Result<(), String> {
        let message = self.message(report, now, zone);
        match timeout(DEADLINE, hand_over(&message)).await {
            Ok(ended) => ended,
            Err(_) => Err(format!(
                "sendmail did not end within {} s",
                DEADLINE.as_secs()
            )),
        }
    }

    /// The mail with its headers (RFC 5322).
    fn message(&self, report: &Report, now: Timestamp, zone: &TimeZone) -> String {
        let mut headers = Vec::new();
        headers.extend(self.from.iter().map(|from| format!("From: {from}")));
        headers.push(format!("To: {}", self.to.join(", ")));
        headers.push(format!(
            "Subject: {}",
            encoded(&format!("layerlab: {}", report.headline))
        ));
        headers.push(format!(
            "Date: {}",
            now.to_zoned(zone.clone())
                .strftime("%a, %d %b %Y %H:%M:%S %z")
        ));
        headers.extend(
            [
                // No holiday notice answers it (RFC 3834).
                "Auto-Submitted: auto-generated",
                "MIME-Version: 1.0",
                "Content-Type: text/plain; charset=utf-8",
                "Content-Transfer-Encoding: base64",
            ]
            .map(str::to_owned),
        );
        // A line of mail has 998 bytes at most, one of base64 76 by custom: 57 bytes.
        let text = report.text(zone);
        let body: Vec<String> = text
            .as_bytes()
            .chunks(57)
            .map(|part| STANDARD.encode(part))
            .collect();
        format!("{}\n\n{}\n", headers.join("\n"), body.join("\n"))
    }
}

/// A header's text, in encoded words (RFC 2047) unless it is plain ASCII.
fn encoded(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_graphic() || c == ' ';
    if text.chars().all(is_plain) && text.len() < 200 {
        return text.to_owned();
    }
    let mut words = Vec::new();
    let mut word = String::new();
    for letter in text.chars() {
        if word.len() + letter.len_utf8() > SUBJECT_BYTES {
            words.push(std::mem::take(&mut word));
        }
        word.push(letter);
    }
    words.push(word);
    let words: Vec<String> = words
        .iter()
        .map(|word| format!("=?utf-8?B?{}?=", STANDARD.encode(word)))
        .collect();
    words.join("\n ")
}

async fn hand_over(message: &str) -> Result<(), String> {
    let said = |error: std::io::Error| {
        format!(
            "sendmail cannot be run: {error}; install a mail system that brings it, such as msmtp-mta or postfix, or empty \
             `report.mail-to`"
        )
    };
    let mut sendmail = Command::new(program())
        // Whom to write stands in the mail; a line with a single dot does not end it.
        .args(["-t", "-i"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(said)?;
    if let Some(mut stdin) = sendmail.stdin.take() {
        // One that ends before it has read all says why.
        let _ = stdin.write_all(message.as_bytes()).await;
    }
    let ended = sendmail.wait_with_output().await.map_err(said)?;
    if ended.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&ended.stderr);
    match stderr.trim() {
        "" => Err(format!("sendmail ended with {}", ended.status)),
        reason => Err(format!("sendmail refused the mail: {reason}")),
    }
}

fn program() -> PathBuf {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&on_path).chain(SENDMAIL_FOLDERS.map(PathBuf::from));
    let mut programs = folders.map(|folder| folder.join(SENDMAIL));
    programs
        .find(|program| program.is_file())
        .unwrap_or_else(|| PathBuf::from(SENDMAIL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kept;

    fn message(from: Option<&str>) -> String {
        let mail = Mail {
            to: vec!["night@example.org".to_owned(), "root".to_owned()],
            from: from.map(str::to_owned),
        };
        let now = Timestamp::UNIX_EPOCH;
        let report = Report::of(&Kept::default(), &[], now, now);
        mail.message(&report, now, &TimeZone::UTC)
    }

    #[test]
    fn a_mail_has_its_headers_and_the_text_of_the_report() {
        let message = message(Some("lab@example.org"));
        let (headers, body) = message.split_once("\n\n").expect("a body");
        assert_eq!(
            headers.lines().collect::<Vec<_>>()[..4],
            [
                "From: lab@example.org",
                "To: night@example.org, root",
                "Subject: layerlab: Nothing was asked for.",
                "Date: Thu, 01 Jan 1970 00:00:00 +0000",
            ]
        );
        let body: Vec<u8> = body
            .lines()
            .flat_map(|line| STANDARD.decode(line).expect("base64"))
            .collect();
        let body = String::from_utf8(body).expect("UTF-8");
        assert!(body.starts_with("Nothing was asked for.\n"), "{body}");
    }

    #[test]
    fn without_a_sender_sendmail_names_one() {
        assert!(message(None).starts_with("To: "));
    }

    #[test]
    fn a_subject_beyond_ascii_is_in_encoded_words_that_mail_can_carry() {
        assert_eq!(encoded("plain (text)"), "plain (text)");
        let text = "Größe: ".repeat(20);
        let subject = encoded(&text);
        let mut decoded = Vec::new();
        for line in subject.lines() {
            assert!(line.trim_start().len() <= 75, "{line}");
            let word = line.trim_start().strip_prefix("=?utf-8?B?");
            let word = word
                .and_then(|word| word.strip_suffix("?="))
                .expect("a word");
            let bytes = STANDARD.decode(word).expect("base64");
            // Each is whole characters.
            decoded.push(String::from_utf8(bytes).expect("UTF-8"));
        }
        assert_eq!(decoded.concat(), text);
        assert!(
            !encoded("a\nBcc: b@example.org").contains("Bcc"),
            "no second header"
        );
    }
}
