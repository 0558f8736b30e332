//! A terminal's screen that is drawn over and given back as it was.

use std::io::{self, Write};

use console::{Term, truncate_str};

use super::view::ScreenLine;

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// The alternate screen of standard output; dropping it shows what was there before.
pub(super) struct Screen(Term);

impl Screen {
    pub(super) fn enter() -> io::Result<Screen> {
        let screen = Screen(Term::stdout());
        write(ENTER)?;
        Ok(screen)
    }

    /// Draws as many of `lines` as there is room for, and `help` at the bottom.
    pub(super) fn draw(&mut self, lines: &[ScreenLine], help: Option<&str>) -> io::Result<()> {
        let (rows, columns) = self.0.size();
        write(&frame(lines, help, rows.into(), columns.into()))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has gone away needs nothing back.
        let _ = write(LEAVE);
    }
}

/// In one write, so that nobody sees half of it.
fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn frame(lines: &[ScreenLine], help: Option<&str>, rows: usize, columns: usize) -> String {
    let rows = rows.saturating_sub(help.iter().len());
    let mut shown: Vec<ScreenLine> = lines.to_vec();
    if lines.len() > rows {
        shown.truncate(rows.saturating_sub(1));
        shown.push(ScreenLine::plain(format!(
            "… {} more lines",
            lines.len() - shown.len()
        )));
    }
    if let Some(help) = help {
        shown.push(ScreenLine::bold(help.to_owned()));
    }
    let shown = shown.iter().map(|line| {
        let cut = truncate_str(&line.text, columns, "…");
        match line.bold {
            true => format!("{BOLD}{cut}{PLAIN}{CLEAR_LINE}"),
            false => format!("{cut}{PLAIN}{CLEAR_LINE}"),
        }
    });
    // No line feed after the last: it would scroll a full screen.
    let shown: Vec<String> = shown.collect();
    format!("{HOME}{}{CLEAR_BELOW}", shown.join("\r\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_no_larger_than_the_terminal() {
        let lines: Vec<ScreenLine> = (0..5)
            .map(|_| ScreenLine::plain("0123456789".to_owned()))
            .collect();
        let drawn = frame(&lines, None, 3, 6);
        let expected = format!(
            "{HOME}01234…{PLAIN}{CLEAR_LINE}\r\n01234…{PLAIN}{CLEAR_LINE}\r\n… 3 m…{PLAIN}{CLEAR_LINE}{CLEAR_BELOW}"
        );
        assert_eq!(drawn, expected);
        let with_help = frame(&lines, Some("q: quit"), 3, 20);
        assert!(with_help.ends_with(&format!("{BOLD}q: quit{PLAIN}{CLEAR_LINE}{CLEAR_BELOW}")));
        assert_eq!(with_help.matches("\r\n").count(), 2, "{with_help}");
    }
}
