//! What the daemon wants to be sent to the phone, and whose turn it is to speak.
//!
//! Over the network adb_client holds its one lock for as long as it waits for something to read, so that nothing can be
//! written meanwhile. But whoever is given what was read may take time over it, and the lock is free then. So both
//! directions take turns: what is to be written is written while the reading thread stands in [`FromPhone::flush`]. The
//! phone's side must speak from time to time for there to be turns at all.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::outbox::Outbox;

/// As much as waits to be sent before the daemon is made to wait.
const MOST_WAITING: usize = 1 << 20;

/// What is to be sent, for one request after the other.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    turns: Mutex<Turns>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Turns {
    /// An empty portion is the end of a file.
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The reading thread stands still.
    is_parked: bool,
    /// What was taken is being written.
    is_writing: bool,
    /// The request is over, or its command is: nobody wants anything more.
    is_over: bool,
}

impl Turns {
    /// As much as fits into `buffer` of the first portion, which must be there.
    fn take(&mut self, buffer: &mut [u8]) -> usize {
        let Some(mut portion) = self.waiting.pop_front() else {
            return 0;
        };
        let length = portion.len().min(buffer.len());
        buffer[..length].copy_from_slice(&portion[..length]);
        if length < portion.len() {
            portion.drain(..length);
            self.waiting.push_front(portion);
        }
        self.bytes -= length;
        length
    }
}

impl Inbox {
    /// A request has come: what comes from now on is for it.
    pub(crate) fn begin(&self) {
        *self.lock() = Turns::default();
    }

    /// The request is over.
    pub(crate) fn end(&self) {
        let mut turns = self.lock();
        turns.waiting.clear();
        turns.bytes = 0;
        turns.is_over = true;
        self.changed.notify_all();
    }

    /// Adds `bytes` to what waits. Blocks while too much waits.
    pub(crate) fn put(&self, bytes: Vec<u8>) {
        let mut turns = self.wait_while(|turns| turns.bytes >= MOST_WAITING && !turns.is_over);
        if !turns.is_over {
            turns.bytes += bytes.len();
            turns.waiting.push_back(bytes);
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Turns> {
        // Whoever panics ends the process.
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl Fn(&Turns) -> bool) -> MutexGuard<'_, Turns> {
        self.changed
            .wait_while(self.lock(), |turns| condition(turns))
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The standard input of a command.
pub(crate) struct ToPhone(pub(crate) Arc<Inbox>);

impl Read for ToPhone {
    /// Whoever asks for more has written what it was given.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.lock().is_writing = false;
        self.0.changed.notify_all();
        let mut turns = self
            .0
            .wait_while(|turns| !(turns.is_over || turns.is_parked && turns.bytes > 0));
        if turns.is_over {
            return Ok(0);
        }
        turns.is_writing = true;
        loop {
            let length = turns.take(buffer);
            self.0.changed.notify_all();
            if length > 0 {
                return Ok(length);
            }
        }
    }
}

/// The standard output of a command. Its end is that of the command.
pub(crate) struct FromPhone {
    inbox: Arc<Inbox>,
    outbox: Outbox,
}

impl FromPhone {
    pub(crate) fn new(inbox: Arc<Inbox>, outbox: Outbox) -> FromPhone {
        FromPhone { inbox, outbox }
    }
}

impl Write for FromPhone {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outbox.data(bytes);
        Ok(bytes.len())
    }

    /// Comes after each thing that was read: the other direction's turn, if it wants one.
    fn flush(&mut self) -> io::Result<()> {
        self.inbox.lock().is_parked = true;
        self.inbox.changed.notify_all();
        let mut turns = self
            .inbox
            .wait_while(|turns| (turns.bytes > 0 || turns.is_writing) && !turns.is_over);
        turns.is_parked = false;
        Ok(())
    }
}

impl Drop for FromPhone {
    fn drop(&mut self) {
        self.inbox.end();
    }
}

/// A file's content.
pub(crate) struct FileContent<'a> {
    inbox: &'a Inbox,
    is_whole: bool,
}

impl FileContent<'_> {
    pub(crate) fn of(inbox: &Inbox) -> FileContent<'_> {
        FileContent {
            inbox,
            is_whole: false,
        }
    }
}

impl Read for FileContent<'_> {
    /// Gives as much as is asked for: whatever it gives is a packet of its own, for which the phone is waited for.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() && !self.is_whole {
            let mut turns = self.inbox.wait_while(|turns| turns.waiting.is_empty());
            let length = turns.take(&mut buffer[filled..]);
            self.is_whole = length == 0;
            filled += length;
            self.inbox.changed.notify_all();
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn a_file_is_given_in_full_packets() {
        let inbox = Inbox::default();
        inbox.begin();
        for portion in [&b"abc"[..], b"d", b"efgh", b""] {
            inbox.put(portion.to_vec());
        }
        let (mut content, mut packet) = (FileContent::of(&inbox), [0; 3]);
        let mut given = Vec::new();
        loop {
            let length = content.read(&mut packet).expect("memory");
            if length == 0 {
                break;
            }
            given.push(packet[..length].to_vec());
        }
        assert_eq!(given, [&b"abc"[..], b"def", b"gh"]);
    }

    #[test]
    fn nothing_is_written_but_while_the_reading_thread_stands_still() {
        let inbox = Arc::new(Inbox::default());
        inbox.begin();
        let portions = 200_u32;
        // The phone speaks until everything was written: how often that takes is up to the machine.
        let (spoken, written) = (AtomicU32::new(0), AtomicU32::new(0));
        let (mut given, mut disturbed) = (Vec::new(), 0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut from_phone = FromPhone::new(Arc::clone(&inbox), Outbox::default());
                while written.load(Ordering::SeqCst) < portions {
                    spoken.fetch_add(1, Ordering::SeqCst);
                    from_phone.flush().expect("no error");
                }
            });
            let (mut to_phone, mut buffer) = (ToPhone(Arc::clone(&inbox)), [0; 4]);
            for portion in 0..portions {
                // Nothing waits behind it: that it is being written is all that the phone's side must heed.
                inbox.put(portion.to_le_bytes().to_vec());
                let length = to_phone.read(&mut buffer).expect("no error");
                given.push((length, u32::from_le_bytes(buffer)));
                let before = spoken.load(Ordering::SeqCst);
                (0..100).for_each(|_| thread::yield_now());
                disturbed += usize::from(spoken.load(Ordering::SeqCst) != before);
                written.fetch_add(1, Ordering::SeqCst);
            }
            // After the last one comes the end.
            given.push((to_phone.read(&mut buffer).expect("no error"), portions));
        });
        assert_eq!(disturbed, 0, "the other direction went on");
        let whole = (0..portions).map(|portion| (4, portion));
        assert!(given.into_iter().eq(whole.chain([(0, portions)])));
    }
}
