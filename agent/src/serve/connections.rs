//! Which connections are open: the daemon's, and a few that have not said hello yet.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many connections may wait to say hello. A daemon says it at once, so that the oldest of more is none; that many
/// take an eighth of the files that a process may have open.
const MOST_WAITING: usize = 32;

/// The open connections. Each is known by the number that it was given when it was accepted.
#[derive(Default)]
pub(super) struct Connections(Mutex<Open>);

#[derive(Default)]
struct Open {
    next: u64,
    /// Those that have not said hello, the oldest first.
    waiting: VecDeque<(u64, UnixStream)>,
    /// The daemon's.
    current: Option<(u64, UnixStream)>,
}

impl Connections {
    /// Lets a connection wait until it has said hello. One too many ends the one that has waited longest.
    ///
    /// # Errors
    /// When the process cannot open more files.
    pub(super) fn wait(&self, stream: &UnixStream) -> io::Result<u64> {
        let stream = stream.try_clone()?;
        let mut open = self.lock();
        if open.waiting.len() == MOST_WAITING
            && let Some((_, oldest)) = open.waiting.pop_front()
        {
            end(&oldest);
        }
        let number = open.next;
        open.next += 1;
        open.waiting.push_back((number, stream));
        Ok(number)
    }

    /// Makes a connection that waited the daemon's, and ends the one that was. Nothing is done to one that was ended.
    pub(super) fn admit(&self, number: u64) {
        let mut open = self.lock();
        if let Some(place) = open.waiting.iter().position(|(one, _)| *one == number) {
            let admitted = open.waiting.remove(place);
            if let Some((_, previous)) = std::mem::replace(&mut open.current, admitted) {
                end(&previous);
            }
        }
    }

    /// Ends a connection, on which nothing more is read.
    pub(super) fn end(&self, number: u64) {
        let mut open = self.lock();
        if let Some((_, stream)) = open.current.take_if(|(one, _)| *one == number) {
            end(&stream);
        }
        if let Some(place) = open.waiting.iter().position(|(one, _)| *one == number)
            && let Some((_, stream)) = open.waiting.remove(place)
        {
            end(&stream);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn end(stream: &UnixStream) {
    // It may be closed already, which is what is wanted.
    let _ = stream.shutdown(Shutdown::Both);
}
