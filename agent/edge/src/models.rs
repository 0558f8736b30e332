//! What a server that runs layers is made of.

use crate::infer::{InferRequest, Inferred};
use crate::packed::{PackedAnswer, PackedRequest};
use crate::picture::PictureRequest;

/// The models that a server runs layers of.
///
/// [`Models::prepare`] and [`Models::run`] are called by one connection at a time, one after the other. Why something
/// cannot be done is said in one sentence, which the client reads.
pub trait Models: Send + Sync {
    /// Sees whether what is asked for could be run, without loading it. The payload has not come yet.
    ///
    /// # Errors
    /// A model, layers or a processor that are not there; tensors of other shapes than cross the cut.
    fn accepts(&self, asked: &InferRequest) -> Result<(), String>;

    /// Loads what is asked for, unless it is loaded.
    ///
    /// # Errors
    /// When a processor cannot run it, or its memory does not hold it.
    fn prepare(&self, asked: &InferRequest) -> Result<(), String>;

    /// The whole network on the processor that a picture is to be answered on, which is then accepted, prepared and run as any
    /// layers are. The picture has not come yet.
    ///
    /// # Errors
    /// A model that is not there, or takes no pictures.
    fn whole(&self, _asked: &PictureRequest) -> Result<InferRequest, String> {
        Err("this server answers no pictures: start `layerlab edge-server --model`".to_owned())
    }

    /// The payload of [`Models::whole`]'s request: the picture in `file` as the network takes it.
    ///
    /// # Errors
    /// When the file is no such picture.
    fn input(&self, asked: &PictureRequest, _file: &[u8]) -> Result<Vec<u8>, String> {
        self.whole(asked).map(|_| Vec::new())
    }

    /// Runs what was prepared on `payload`, which has the bytes of the tensors that were asked for.
    ///
    /// # Errors
    /// When a runtime fails.
    fn run(&self, asked: &InferRequest, payload: &[u8]) -> Result<Inferred, String>;

    /// Runs what was prepared on the tensors that `payload` has packed, and packs what they give as was asked for.
    ///
    /// # Errors
    /// When what came is not what it should be, or as [`Models::run`].
    fn run_packed(&self, _asked: &PackedRequest, _payload: &[u8]) -> Result<PackedAnswer, String> {
        Err("this server unpacks no tensors: start `layerlab edge-server --model`".to_owned())
    }
}
