//! What the child says, by whichever thread.

use std::io::{self, Write};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use layerlab_farm::adb::direct::frames::{Answer, Failure, Frame};

/// Whether the phone has greeted us.
static READY: AtomicBool = AtomicBool::new(false);

/// The process's standard output.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outbox {}

impl Outbox {
    /// Says `frame`. A daemon that does not listen any more wants nothing.
    pub(crate) fn say(self, frame: &Frame) {
        self.write(&frame.encode());
    }

    /// Says what came from the phone.
    pub(crate) fn data(self, bytes: &[u8]) {
        self.write(&Frame::data(bytes));
    }

    /// Says that the phone has greeted us.
    pub(crate) fn ready(self) {
        READY.store(true, Ordering::SeqCst);
        self.say(&Frame::Answer(Answer::Ready));
    }

    /// Whether that was said.
    pub(crate) fn is_ready(self) -> bool {
        READY.load(Ordering::SeqCst)
    }

    /// Says why nothing more can be done, and ends the process: the library's other threads cannot be ended.
    pub(crate) fn fail(self, failure: Failure) -> ! {
        self.say(&Frame::Answer(Answer::Failed(failure)));
        process::exit(1)
    }

    fn write(self, bytes: &[u8]) {
        let mut out = io::stdout().lock();
        if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
            process::exit(0);
        }
    }
}
