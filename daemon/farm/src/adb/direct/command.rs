//! A command by a way that brings back neither its exit status nor tells its errors from its output. The phone's shell
//! writes both behind the output, after a word that no output can hold by chance.

use super::super::shell::Output;
use super::super::text::quote;

/// A command, with the word that ends its output.
pub(super) struct Marked {
    word: String,
    /// What the phone's shell is to run.
    pub(super) line: String,
}

impl Marked {
    /// `command`, of which the standard input has so many bytes.
    pub(super) fn new(command: &str, input_bytes: usize) -> Marked {
        let word = format!("layerlab-{:032x}", rand::random::<u128>());
        let command = quote(command);
        // Standard input has no end of its own there, and may only be sent once something was written. No byte too many may be
        // read of it, and each that was passed on by itself would be a message of its own on its way back.
        let run = match input_bytes {
            0 => format!("sh -c {command} </dev/null"),
            _ => format!("dd ibs=1 obs=4096 count={input_bytes} 2>/dev/null | sh -c {command}"),
        };
        let line = format!(
            "printf .; {{ e=$({{ {run}; }} 2>&1 >&3 3>&-); s=$?; \
             printf '\\n%s %s\\n%s\\n%s end\\n' {word} \"$s\" \"$e\" {word}; }} 3>&1"
        );
        Marked { word, line }
    }

    /// What it did; nothing if what came is not all of it.
    pub(super) fn parse(&self, came: &[u8]) -> Option<Output> {
        let came = came.strip_prefix(b".")?;
        let end = format!("\n{} end\n", self.word);
        let came = came.strip_suffix(end.as_bytes())?;
        let mark = format!("\n{} ", self.word);
        // Output may be any bytes; the word is in none of them but by our own doing.
        let at = came
            .windows(mark.len())
            .position(|window| window == mark.as_bytes())?;
        let (stdout, rest) = (&came[..at], &came[at + mark.len()..]);
        let line = rest.iter().position(|byte| *byte == b'\n')?;
        let status = std::str::from_utf8(&rest[..line]).ok()?.parse().ok()?;
        Some(Output {
            status,
            stdout: stdout.to_vec(),
            stderr: rest[line + 1..].to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    /// As a phone's shell would run it: one stream in, and one out for everything.
    fn run(command: &str, input: &[u8]) -> (Marked, Vec<u8>) {
        let marked = Marked::new(command, input.len());
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{{ {}\n}} 2>&1", marked.line)]);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().expect("a shell");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(input).expect("it is read");
        // Kept open, as it is on a phone.
        let came = child.wait_with_output().expect("it ends").stdout;
        drop(stdin);
        (marked, came)
    }

    #[test]
    fn exit_status_errors_and_output_are_told_apart() {
        let (marked, came) = run("cat; printf 'a\\0b\\n\\n'; echo no >&2; exit 7", b"yes\n");
        let output = marked.parse(&came).expect("all of it");
        assert_eq!(output.status, 7);
        assert_eq!(output.stdout, b"yes\na\0b\n\n");
        assert_eq!(output.stderr, b"no");
    }

    #[test]
    fn a_command_may_say_nothing_and_be_hostile() {
        let (marked, came) = run("true '; exit 9' \"$(false)\"", b"");
        let nothing = Output::default();
        assert_eq!(marked.parse(&came), Some(nothing));
    }

    #[test]
    fn a_part_of_it_is_no_result() {
        let (marked, came) = run("echo out; exit 3", b"");
        assert_eq!(marked.parse(&came).map(|output| output.status), Some(3));
        for length in 0..came.len() {
            assert_eq!(marked.parse(&came[..length]), None, "{length} bytes");
        }
    }
}
