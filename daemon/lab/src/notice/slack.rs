//! A report as Slack's incoming webhooks take it, and Mattermost's and others' that understand the same.

use jiff::tz::TimeZone;
use serde::Serialize;

use crate::report::Report;

/// What does not fit is left out: longer messages are cut off, and nobody reads them in a chat.
const MOST_CHARACTERS: usize = 3_000;

#[derive(Serialize)]
pub(super) struct SlackMessage {
    text: String,
}

/// The headline, and below it the text of the report in letters of one width.
pub(super) fn message(report: &Report, zone: &TimeZone) -> SlackMessage {
    let text = report.text(zone);
    let (headline, details) = text.split_once('\n').unwrap_or((&text, ""));
    SlackMessage {
        text: format!(
            "*{}*\n```\n{}\n```",
            escaped(headline),
            escaped(&shortened(details))
        ),
    }
}

/// Whole lines of `text`, as many as there is room for.
fn shortened(text: &str) -> String {
    let mut room = MOST_CHARACTERS;
    let mut lines = Vec::new();
    for line in text.lines() {
        let length = line.chars().count() + 1;
        if length > room {
            lines.push("… and more: `layerlab report` says all of it");
            break;
        }
        room -= length;
        lines.push(line);
    }
    lines.join("\n")
}

/// Text that calls nobody and ends no block: a model may be called anything.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    let text = text.replace('<', "&lt;").replace('>', "&gt;");
    text.replace('`', "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_calls_nobody_and_ends_no_block() {
        assert_eq!(
            escaped("<!channel> ``` & more"),
            "&lt;!channel&gt; ''' &amp; more"
        );
    }

    #[test]
    fn what_is_long_is_cut_after_a_line() {
        let text = "0123456789\n".repeat(400);
        let cut = shortened(&text);
        assert!(cut.chars().count() < MOST_CHARACTERS + 60);
        let (lines, last) = cut.rsplit_once('\n').expect("lines");
        assert!(lines.lines().all(|line| line == "0123456789"));
        assert!(last.contains("`layerlab report`"), "{last}");
        assert_eq!(shortened("one\ntwo"), "one\ntwo");
    }
}
