//! The models of the orders that were worked on last. Reading one anew for each order takes time, and loses what a runtime
//! keeps of it.

use std::sync::Arc;

use layerlab_protocol::{FailureKind, Order};

use crate::ModelWithTwin;
use crate::ended::{Ended, failed};
use crate::files::Files;
use crate::kept::Kept;

/// How large the files of the models are together that are kept beside the last: probes are small, and measured in turns with
/// the model.
const BESIDE_THE_LAST_BYTES: u64 = 4 << 20;

/// The model of this hash among `files`, with its quantised twin if there is one.
///
/// # Errors
/// When a file is not there, no model, or no twin: in a sentence.
pub(crate) fn read_model(
    files: &Files,
    sha256: &str,
    quantised: Option<&str>,
) -> Result<ModelWithTwin, String> {
    let read = |sha256: &str| files.network(sha256).map_err(|error| error.to_string());
    let model = Arc::new(read(sha256)?);
    match quantised {
        None => Ok(ModelWithTwin::alone(model)),
        Some(quantised) => {
            ModelWithTwin::with_twin(model, &read(quantised)?).map_err(|reason| reason.to_string())
        }
    }
}

/// The models among the device's files, as they were read.
pub(crate) struct Models<'a> {
    files: &'a Files,
    kept: Kept<Named>,
}

/// A model, and the files that it was read from.
struct Named {
    model_sha256: String,
    quantised_sha256: Option<String>,
    model: ModelWithTwin,
}

impl Named {
    fn is_of(&self, order: &Order) -> bool {
        self.model_sha256 == order.model_sha256 && self.quantised_sha256 == order.quantised_sha256
    }
}

impl<'a> Models<'a> {
    /// The models among these files; none has been read yet.
    pub(crate) fn of(files: &'a Files) -> Self {
        Models {
            files,
            kept: Kept::new(BESIDE_THE_LAST_BYTES),
        }
    }

    /// The order's model, with its quantised twin where the order names one.
    ///
    /// # Errors
    /// When a file is not there any more, or not what its name says, even if its model was read before; and when it is no
    /// model, or no twin.
    pub(crate) fn of_order(&mut self, order: &Order) -> Result<ModelWithTwin, Ended> {
        let names = [Some(&order.model_sha256), order.quantised_sha256.as_ref()];
        let mut bytes = 0;
        for sha256 in names.into_iter().flatten() {
            self.files.prove(sha256)?;
            bytes += self.files.bytes(sha256)?;
        }
        if let Some(known) = self.kept.find(|named| named.is_of(order)) {
            return Ok(known.model.clone());
        }
        self.kept.make_room();
        let model = self.read(order)?;
        let named = Named {
            model_sha256: order.model_sha256.clone(),
            quantised_sha256: order.quantised_sha256.clone(),
            model: model.clone(),
        };
        self.kept.keep(bytes, named);
        Ok(model)
    }

    fn read(&self, order: &Order) -> Result<ModelWithTwin, Ended> {
        let model = Arc::new(self.files.network(&order.model_sha256)?);
        let Some(quantised) = &order.quantised_sha256 else {
            return Ok(ModelWithTwin::alone(model));
        };
        let quantised = self.files.network(quantised)?;
        ModelWithTwin::with_twin(model, &quantised)
            .map_err(|reason| failed(FailureKind::Model, reason.to_string()))
    }
}
