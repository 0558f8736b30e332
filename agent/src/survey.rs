//! Orders to survey: which layers each processor cannot run.

use layerlab_protocol::Event;

use crate::ModelWithTwin;
use crate::ended::Ended;
use crate::queue::{Queue, Task};
use crate::runtime::{RuntimeError, Runtimes};
use crate::walk;

/// Journals each layer that one of `processors` cannot run, unless the journal has it already.
pub(crate) fn survey(
    task: &Task,
    queue: &Queue,
    runtimes: &Runtimes,
    model: &ModelWithTwin,
    processors: &[String],
) -> Result<(), Ended> {
    for processor in processors {
        for layer in walk::layers(model.model()) {
            match runtimes.supports(processor, model, layer) {
                Ok(()) => {}
                Err(RuntimeError::Unsupported {
                    processor,
                    segment,
                    reason,
                }) => {
                    let event = Event::Unsupported {
                        processor,
                        segment,
                        reason: reason.to_string(),
                    };
                    if !task.history.contains(&event) {
                        queue.record(task, event)?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
