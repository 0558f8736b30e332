//! What goes to the terminal: results to standard output, everything else to standard error.

use std::io::{self, Write};

use serde::Serialize;

use super::exit::{Code, ExitWith, Failure};

/// Prints `text` and a line feed. A reader that has gone away (`| head`) is no error.
pub(super) fn print(text: impl std::fmt::Display) -> Result<(), Failure> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.exit_with(Code::Output),
    }
}

/// How many columns the terminal has, if what is printed goes to one.
pub(super) fn columns() -> Option<usize> {
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(columns.into())
}

/// `text` in lines of so many columns, unless a word is longer; all but the first begin with so many spaces.
pub(super) fn wrapped(text: &str, columns: Option<usize>, indent: usize) -> String {
    let Some(columns) = columns else {
        return text.to_owned();
    };
    let mut wrapped = String::new();
    let mut used = 0;
    for (place, word) in text.split(' ').enumerate() {
        let width = console::measure_text_width(word);
        if used > indent && used + 1 + width > columns {
            wrapped.push('\n');
            wrapped.extend(std::iter::repeat_n(' ', indent));
            used = indent;
        } else if place > 0 {
            wrapped.push(' ');
            used += 1;
        }
        wrapped.push_str(word);
        used += width;
    }
    wrapped
}

/// Prints `value` as JSON.
pub(super) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(serde_json::to_string_pretty(value).exit_with(Code::Internal)?)
}

/// Tells the user something that is not the result. Nobody listening is no error.
pub(super) fn note(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Tells the user why layerlab ends.
pub(super) fn error(failure: &Failure) {
    note(format_args!("layerlab: {failure}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_wrapped_between_words() {
        let text = "adb: one runs on port 5037 already";
        assert_eq!(wrapped(text, None, 4), text);
        let expected = "adb: one runs on\n    port 5037\n    already";
        assert_eq!(wrapped(text, Some(16), 4), expected);
        assert_eq!(
            wrapped("a-word-that-is-long b", Some(5), 2),
            "a-word-that-is-long\n  b"
        );
    }
}
