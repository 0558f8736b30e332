//! Ending a measurement from another thread, also while it waits for the server.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What ends a measurement before its time. Copies are of the same measurement.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Mutex<CancelState>>);

#[derive(Debug, Default)]
struct CancelState {
    is_cancelled: bool,
    /// The connection that the measurement waits for.
    waited_for: Option<TcpStream>,
}

impl Cancel {
    /// Ends the measurement. One that waits for the server hears of it at once.
    pub fn cancel(&self) {
        let mut state = self.lock();
        state.is_cancelled = true;
        cut(state.waited_for.take());
    }

    /// Whether the measurement is to end.
    pub fn is_cancelled(&self) -> bool {
        self.lock().is_cancelled
    }

    /// From now on `stream` is what the measurement waits for.
    pub(crate) fn cuts(&self, stream: &TcpStream) -> io::Result<()> {
        let stream = stream.try_clone()?;
        let mut state = self.lock();
        state.waited_for = Some(stream);
        if state.is_cancelled {
            cut(state.waited_for.take());
        }
        Ok(())
    }

    /// The measurement waits for nothing any more. Until then the connection stays open.
    pub fn release(&self) {
        self.lock().waited_for = None;
    }

    fn lock(&self) -> MutexGuard<'_, CancelState> {
        // Nothing that holds the lock can leave the state half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cut(stream: Option<TcpStream>) {
    if let Some(stream) = stream {
        // It may be closed already, which is what is wanted.
        let _ = stream.shutdown(Shutdown::Both);
    }
}
