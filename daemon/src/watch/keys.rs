//! Keys that are pressed while the view is shown. The terminal's driver is asked by `stty`, which every system has, to hand
//! them over one by one and not to show them; Ctrl-C stays what it is.

use std::io::{IsTerminal, Read};
use std::process::{Command, Stdio};

use tokio::sync::mpsc;

/// What they do, for the bottom of the screen.
pub(super) const HELP: &str = "q: quit   space: next jobs   b: jobs before";

/// What somebody wants who presses a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    Next,
    Before,
}

/// The terminal as it is while keys are read; dropping it makes it as it was.
pub(super) struct Keys {
    /// What `stty` calls the way it was; none if standard input is no terminal.
    before: Option<String>,
    pressed: mpsc::Receiver<Key>,
}

impl Keys {
    pub(super) fn read() -> Keys {
        let (sender, pressed) = mpsc::channel(16);
        let before = std::io::stdin().is_terminal().then(was).flatten();
        if before.is_some() {
            set(&["-icanon", "-echo", "min", "1", "time", "0"]);
            // It ends with the process: nobody can be woken who waits for a key.
            std::thread::spawn(move || {
                for byte in std::io::stdin().lock().bytes().map_while(Result::ok) {
                    if let Some(key) = meant(byte)
                        && sender.blocking_send(key).is_err()
                    {
                        return;
                    }
                }
            });
        }
        Keys { before, pressed }
    }

    /// Whether keys can be pressed at all.
    pub(super) fn can_be_pressed(&self) -> bool {
        self.before.is_some()
    }

    /// The next key; waits for ever if none can be pressed.
    pub(super) async fn next(&mut self) -> Key {
        match self.pressed.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            set(&[before]);
        }
    }
}

fn meant(byte: u8) -> Option<Key> {
    match byte {
        b'q' | b'Q' => Some(Key::Quit),
        b' ' | b'n' => Some(Key::Next),
        b'b' | b'p' => Some(Key::Before),
        _ => None,
    }
}

/// How the terminal is now.
fn was() -> Option<String> {
    let mut stty = Command::new("stty");
    let output = stty.arg("-g").stdin(Stdio::inherit()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| output.status.success() && !text.is_empty())
}

fn set(arguments: &[&str]) {
    let mut stty = Command::new("stty");
    stty.args(arguments).stdin(Stdio::inherit());
    // A terminal that has gone away needs nothing.
    let _ = stty.stdout(Stdio::null()).stderr(Stdio::null()).status();
}
