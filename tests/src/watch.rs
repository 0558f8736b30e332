//! `layerlab devices --watch --json`, as a script follows it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use crate::wait::{DEADLINE, in_vain};

/// A watch that goes on until it is dropped.
pub struct Watch {
    child: Child,
    changes: mpsc::Receiver<serde_json::Value>,
}

impl Watch {
    /// Has `layerlab` watch, and call the phone at `address`.
    pub fn start(mut layerlab: Command, address: &str) -> Watch {
        layerlab.args(["devices", "--watch", "--json", "--adb-connect", address]);
        let child = layerlab.stdout(Stdio::piped()).spawn();
        let mut child = child.expect("layerlab starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, changes) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let change = serde_json::from_str(&line).expect("JSON");
                if sender.send(change).is_err() {
                    return;
                }
            }
        });
        Watch { child, changes }
    }

    /// Waits until the device `name` is in `state`.
    #[track_caller]
    pub fn wait_for(&mut self, name: &str, state: &str) {
        let end = std::time::Instant::now() + DEADLINE;
        loop {
            let left = end.saturating_duration_since(std::time::Instant::now());
            let Ok(change) = self.changes.recv_timeout(left) else {
                panic!("{}", in_vain(&format!("{name} to be {state}")));
            };
            if change["device"]["name"] == name && change["device"]["state"] == state {
                return;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
