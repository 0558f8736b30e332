//! Names from outside: quoted for the phone's shell, made harmless for a terminal.

use std::fmt;

/// `text` as one word of a POSIX shell, whatever it contains.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Shows a name from outside: what would steer the terminal, or turn the text around, is spelled out.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            if c.is_control() || turns {
                write!(f, "{}", c.escape_default())?;
            } else {
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const HOSTILE: &str = "; $(reboot) `id` ' \" \\ \n .. \u{1b}[2J * ~ \u{1f4f1}";

    #[test]
    fn a_quoted_name_is_one_word_to_a_real_shell() {
        let script = format!("printf %s {}", quote(HOSTILE));
        let output = Command::new("sh").arg("-c").arg(script).output();
        assert_eq!(output.expect("sh").stdout, HOSTILE.as_bytes());
    }

    #[test]
    fn a_printed_name_steers_no_terminal() {
        let shown = Printable(HOSTILE).to_string();
        assert!(shown.chars().all(|c| !c.is_control()), "{shown}");
        assert!(shown.contains("$(reboot)") && shown.contains('\u{1f4f1}'));
    }
}
