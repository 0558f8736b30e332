//! Asks a device which layers its processors cannot run, apart from any measurement.

use layerlab_profiles::document::Unsupported;
use layerlab_protocol::{Entry, Order, Work};

use super::orders::{Fixed, SURVEY};
use super::{KnownJournal, ModelFile, RunError, drive, forget};
use layerlab_farm::Link;

/// What `processors` of the device behind `link` cannot run of `model`. A runtime that finds out by loading alone loads
/// each layer for it.
pub async fn find_unsupported<L: Link>(
    link: &L,
    model: &ModelFile,
    processors: &[String],
) -> Result<Vec<Unsupported>, RunError> {
    let journal = KnownJournal::fresh();
    let survey = Order {
        run: journal.id.clone(),
        number: SURVEY,
        model_sha256: model.sha256.clone(),
        quantised_sha256: model.quantised_sha256(),
        processor: String::new(),
        work: Work::Survey {
            processors: processors.to_vec(),
        },
        seed: 0,
    };
    let mut orders = Fixed::new(vec![survey]);
    let mut nobody = |_: &Entry| {};
    let files: Vec<_> = model.files().collect();
    let found = drive(link, &journal, &files, &mut orders, &mut nobody).await?;
    forget(link, journal.id).await;
    Ok(found.unsupported)
}
