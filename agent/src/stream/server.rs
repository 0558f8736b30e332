//! The server's answers: a thread sends, and another one hears.

use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use layerlab_edge::{Client, PictureReceiver, PictureRequest, PictureSender, Request, hash_bytes};
use layerlab_profiles::accuracy::{EvaluationSet, Preprocessing};
use layerlab_profiles::link::ServerTimes;
use layerlab_profiles::video::{FrameForm, top};
use layerlab_protocol::FrameStream;

use super::happened::{Happened, StreamClock};

/// A server that answers nothing for this long during a stream is gone.
const IMPATIENCE: Duration = Duration::from_secs(10);

/// Pictures before the stream: the first has the server load its model.
const WARM_UP: u32 = 3;

/// A frame that is to be sent: its number, its form and its file.
pub(super) type ToSend = (usize, FrameForm, Vec<u8>);

/// A server that has answered a picture.
pub(super) struct StreamServer<'a> {
    pub(super) sending: Sending<'a>,
    pub(super) hearing: Hearing,
}

/// What sends pictures.
pub(super) struct Sending<'a> {
    sender: PictureSender,
    stream: &'a FrameStream,
    model: [u8; 32],
    preprocessing: &'a Preprocessing,
}

/// What hears the answers.
pub(super) struct Hearing {
    receiver: PictureReceiver,
    /// How many scores an answer has.
    classes: usize,
}

impl<'a> StreamServer<'a> {
    /// Has the server answer a picture a few times.
    ///
    /// # Errors
    /// When it cannot, in a sentence.
    pub(super) fn warm_up(
        client: Client,
        stream: &'a FrameStream,
        set: &'a EvaluationSet,
        (form, file): (&FrameForm, &[u8]),
    ) -> Result<StreamServer<'a>, String> {
        let (sender, receiver) = client.pictures().map_err(|error| error.to_string())?;
        let model = hash_bytes(&stream.server_model_sha256);
        let mut sending = Sending {
            sender,
            stream,
            model: model.ok_or("what should be a model's SHA-256 is none")?,
            preprocessing: &set.preprocessing,
        };
        let mut hearing = Hearing {
            receiver,
            classes: set.classes.len(),
        };
        for _ in 0..WARM_UP {
            let request = sending.request(form, file.len());
            // Why the server takes nothing is heard at the other end.
            let sent = sending.sender.send(request, file);
            hearing.hear()?;
            sent.map_err(|error| error.to_string())?;
        }
        hearing.receiver.be_impatient(IMPATIENCE);
        Ok(StreamServer { sending, hearing })
    }
}

impl Sending<'_> {
    fn request(&self, form: &FrameForm, bytes: usize) -> PictureRequest {
        PictureRequest {
            model: self.model,
            processor: self.stream.server_processor.clone(),
            format: form.format,
            channels: self.preprocessing.channels.clone(),
            mean: self.preprocessing.mean.clone(),
            scale: self.preprocessing.scale,
            bytes: bytes as u64,
        }
    }

    /// How many bytes a request has beside its picture, whatever the form.
    pub(super) fn request_bytes(&self, form: &FrameForm) -> u64 {
        Request::Picture(self.request(form, 0)).encode().len() as u64
    }

    /// Sends frames until there are none, and says which were `sent`.
    pub(super) fn send_all(mut self, frames: &Receiver<ToSend>, sent: &Sender<usize>) {
        for (frame, form, file) in frames {
            let request = self.request(&form, file.len());
            // What cannot be sent is not answered: the other thread says why.
            if sent.send(frame).is_err() || self.sender.send(request, &file).is_err() {
                return;
            }
        }
    }
}

impl Hearing {
    /// Says what the server answers to the frames that were `sent`, until there are none, or it is gone.
    pub(super) fn hear_all(
        mut self,
        sent: &Receiver<usize>,
        clock: StreamClock,
        happened: &Sender<Happened>,
    ) {
        for frame in sent {
            match self.hear() {
                Ok((class, server)) => Happened::Served {
                    frame,
                    at: clock.now(),
                    class,
                    server,
                }
                .tell(happened),
                Err(sentence) => return Happened::Lost(sentence).tell(happened),
            }
        }
    }

    /// The class that the server answers next, and its times.
    fn hear(&mut self) -> Result<(Option<u32>, ServerTimes), String> {
        let answer = self.receiver.answer();
        let (inferred, server) = answer.map_err(|error| error.to_string())?;
        let (floats, _) = inferred.payload.as_chunks::<4>();
        let floats: Vec<f32> = floats.iter().map(|it| f32::from_le_bytes(*it)).collect();
        match floats.len() == self.classes {
            true => Ok((top(&floats), server)),
            false => Err(format!(
                "the server's model answers with {} scores, and the set has {} classes: stream beside the model that was measured",
                floats.len(),
                self.classes
            )),
        }
    }
}
