//! Asks a device which layers its processors cannot run, apart from any measurement.

use layerlab_profiles::Nanos;
use layerlab_profiles::document::Unsupported;
use layerlab_protocol::{Entry, Hygiene, Order, WarmUp, Work};

use super::orders::{Fixed, survey};
use super::{KnownJournal, ModelFile, RunError, drive, forget};
use layerlab_farm::Link;

/// What `processors` of the device behind `link` cannot run of `model`. Takes no device time.
pub(super) async fn find_unsupported<L: Link>(
    link: &L,
    model: &ModelFile,
    processors: &[String],
) -> Result<Vec<Unsupported>, RunError> {
    let journal = KnownJournal::fresh();
    let template = Order {
        run: journal.id.clone(),
        number: 0,
        model_sha256: model.sha256.clone(),
        quantised_sha256: None,
        processor: String::new(),
        work: Work::TimePasses,
        samples_per_segment: 1,
        gap_ns: Nanos::ZERO,
        warm_up: WarmUp::default(),
        hygiene: Hygiene::default(),
        seed: 0,
    };
    let mut orders = Fixed::new(vec![survey(&template, processors.to_vec())]);
    let mut nobody = |_: &Entry| {};
    let found = drive(link, &journal, &[model.file()], &mut orders, &mut nobody).await?;
    forget(link, journal.id).await;
    Ok(found.unsupported)
}
