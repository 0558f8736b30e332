//! Pictures one after the other, of which the next may leave before the last is answered.

use std::time::{Duration, Instant};

use layerlab_profiles::link::ServerTimes;

use crate::client::Client;
use crate::error::EdgeError;
use crate::infer::Inferred;
use crate::message::Request;
use crate::picture::PictureRequest;

const DOING: &str = "having a picture answered";

/// The end that sends.
pub struct PictureSender(Client);

/// The end that hears the answers, in the order of the pictures.
pub struct PictureReceiver(Client);

impl Client {
    /// Both ends, which may be used by two threads.
    ///
    /// # Errors
    /// When the process cannot open more files.
    pub fn pictures(self) -> Result<(PictureSender, PictureReceiver), EdgeError> {
        let receiver = self.try_clone().map_err(|source| self.gone(source))?;
        Ok((PictureSender(self), PictureReceiver(receiver)))
    }
}

impl PictureSender {
    /// Sends a picture, which has as many bytes as the request says.
    ///
    /// # Errors
    /// When the server is gone or takes nothing: why, is heard at the other end. Also for a request that no frame holds.
    pub fn send(&mut self, asked: PictureRequest, picture: &[u8]) -> Result<(), EdgeError> {
        let PictureSender(client) = self;
        if asked.bytes != picture.len() as u64 || !asked.fits_a_frame() {
            return Err(EdgeError::NoPicture);
        }
        let deadline = client.patience.deadline(picture.len() as u64);
        let frame = Request::Picture(asked).encode();
        let sent = client.connection.send_bytes(&frame, picture, deadline);
        sent.map_err(|broken| client.broken(broken, client.patience.silence, DOING))
    }
}

impl PictureReceiver {
    /// Waits for the answer to the next picture that is not answered yet: what leaves the network, and the server's times.
    ///
    /// # Errors
    /// When the server is gone, slow, refuses, or answers something else.
    pub fn answer(&mut self) -> Result<(Inferred, ServerTimes), EdgeError> {
        // Which network it is, is the server's to know.
        let inferred = self.0.tensors(|_| true, DOING)?;
        let done = self.0.done(Instant::now(), DOING)?;
        Ok((inferred, done.server))
    }

    /// From now on waits no longer than so for an answer.
    pub fn be_impatient(&mut self, wait: Duration) {
        self.0.patience.inference = Duration::ZERO;
        self.0.patience.silence = wait;
    }
}
