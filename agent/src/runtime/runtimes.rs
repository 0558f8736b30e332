//! All runtimes of a device together: their processors are the device's, each under a name of its own.

use std::sync::Arc;

use layerlab_model::Network;
use layerlab_profiles::Segment;
use layerlab_protocol::Processor;

use super::{Runtime, RuntimeError, SegmentOnProcessor, Session};
use crate::ModelWithTwin;

/// The runtimes of a device.
pub struct Runtimes {
    runtimes: Vec<Box<dyn Runtime>>,
    processors: Vec<OwnedProcessor>,
}

/// A processor, and who runs networks on it.
struct OwnedProcessor {
    processor: Processor,
    /// The runtime, by its place.
    runtime: usize,
    /// The processor's place among those of the runtime.
    place: usize,
}

/// Two runtimes offer a processor of the same name, so that an order could mean either.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("both {first} and {second} offer a processor `{processor}`: one of them must rename it")]
pub struct DuplicateProcessor {
    /// The name of both processors.
    pub processor: String,
    /// The runtime that offered it first.
    pub first: String,
    /// The runtime that offered it again.
    pub second: String,
}

impl Runtimes {
    /// These runtimes, whose processors come in their order.
    ///
    /// # Errors
    /// When two processors have the same name.
    pub fn new(runtimes: Vec<Box<dyn Runtime>>) -> Result<Runtimes, DuplicateProcessor> {
        let mut processors: Vec<OwnedProcessor> = Vec::new();
        for (number, runtime) in runtimes.iter().enumerate() {
            for (place, offer) in runtime.processors().into_iter().enumerate() {
                let same = |owned: &&OwnedProcessor| owned.processor.name == offer.name;
                if let Some(other) = processors.iter().find(same) {
                    return Err(DuplicateProcessor {
                        processor: offer.name,
                        first: other.processor.runtime.clone(),
                        second: runtime.name().to_owned(),
                    });
                }
                processors.push(OwnedProcessor {
                    processor: Processor {
                        name: offer.name,
                        kind: offer.kind,
                        numerics: offer.numerics,
                        emulated: offer.emulated,
                        runtime: runtime.name().to_owned(),
                        runtime_version: runtime.version().to_owned(),
                        runtime_options: Some(runtime.options(place)),
                        runtime_libraries: Some(runtime.libraries(place)),
                        memory_bytes: offer.memory,
                        threads: offer.threads,
                        pinned_to_cores: offer.pinned_to_cores,
                    },
                    runtime: number,
                    place,
                });
            }
        }
        Ok(Runtimes {
            runtimes,
            processors,
        })
    }

    /// The processors of all runtimes, each under a name of its own.
    pub fn processors(&self) -> impl Iterator<Item = &Processor> {
        self.processors.iter().map(|owned| &owned.processor)
    }

    /// Why processors that runtimes were asked for cannot be used, where they were told to leave those out.
    pub fn left_out(&self) -> impl Iterator<Item = &String> {
        self.runtimes.iter().flat_map(|runtime| runtime.left_out())
    }

    /// Whether the processor of this name can run layers `segment` of `model`, or of its twin where it runs that.
    ///
    /// # Errors
    /// [`RuntimeError::UnknownProcessor`], [`RuntimeError::Unsupported`], and [`RuntimeError::Load`] if the model
    /// does not have these layers.
    pub fn supports(
        &self,
        processor: &str,
        model: &ModelWithTwin,
        segment: Segment,
    ) -> Result<(), RuntimeError> {
        self.owner_that_supports(processor, model, segment)
            .map(drop)
    }

    /// Whether the empty memory of the processor of this name holds layers `segment` of `model`, or of its twin.
    ///
    /// # Errors
    /// Those of [`Runtimes::supports`] and of [`Runtime::fits`].
    pub fn fits(
        &mut self,
        processor: &str,
        model: &ModelWithTwin,
        segment: Segment,
    ) -> Result<(), RuntimeError> {
        let (runtime, place, network) = self.owner_that_supports(processor, model, segment)?;
        self.runtimes[runtime].fits(place, network, segment)
    }

    /// The processor of this name, if the device has it.
    pub fn processor(&self, name: &str) -> Option<&Processor> {
        self.processors().find(|processor| processor.name == name)
    }

    /// Makes layers `segment` of `model`, or of its twin, ready to run on the processor of this name, once its runtime
    /// has said that it can.
    ///
    /// # Errors
    /// Those of [`Runtimes::supports`] and of [`Runtime::load`].
    pub fn load(
        &mut self,
        processor: &str,
        model: &ModelWithTwin,
        segment: Segment,
    ) -> Result<Box<dyn Session>, RuntimeError> {
        let (runtime, place, network) = self.owner_that_supports(processor, model, segment)?;
        self.runtimes[runtime].load(place, network, segment)
    }

    /// Begins a visit on all processors, as [`Runtime::begin_visit`] says.
    pub fn begin_visit(&mut self) {
        for runtime in &mut self.runtimes {
            runtime.begin_visit();
        }
    }

    /// Like [`Runtimes::load`], to be timed: in the process of the visit.
    ///
    /// # Errors
    /// Those of [`Runtimes::load`].
    pub fn load_timed(
        &mut self,
        processor: &str,
        model: &ModelWithTwin,
        segment: Segment,
    ) -> Result<Box<dyn Session>, RuntimeError> {
        let (runtime, place, network) = self.owner_that_supports(processor, model, segment)?;
        self.runtimes[runtime].load_timed(place, network, segment)
    }

    /// The place of the runtime that can run the segment on the processor, the processor's place there, and the network
    /// that it runs: the one place where the model or its twin is chosen.
    fn owner_that_supports<'m>(
        &self,
        processor: &str,
        model: &'m ModelWithTwin,
        segment: Segment,
    ) -> Result<(usize, usize, &'m Arc<Network>), RuntimeError> {
        let is_it = |owned: &&OwnedProcessor| owned.processor.name == processor;
        let Some(owned) = self.processors.iter().find(is_it) else {
            return Err(RuntimeError::UnknownProcessor {
                processor: processor.to_owned(),
                known: self.processors().map(|known| known.name.clone()).collect(),
            });
        };
        let layers = model.model().layer_count();
        if segment.last() > layers {
            let subject = SegmentOnProcessor {
                processor: processor.to_owned(),
                segment,
            };
            return Err(subject.cannot_load(format!("the network has {layers} layers")));
        }
        let unsupported = |reason| RuntimeError::Unsupported {
            processor: processor.to_owned(),
            segment,
            reason,
        };
        let network = model.for_processor(&owned.processor).map_err(unsupported)?;
        self.runtimes[owned.runtime]
            .supports(owned.place, network, segment)
            .map_err(unsupported)?;
        Ok((owned.runtime, owned.place, network))
    }
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::{Bytes, Nanos};
    use layerlab_protocol::{Numerics, ProcessorKind};

    use super::*;
    use crate::runtime::{Inference, ProcessorOffer, Tensor, Unsupported};

    /// A runtime whose last processor runs nothing.
    struct Picky {
        name: &'static str,
        processors: &'static [&'static str],
    }

    struct Loaded(usize);

    impl Session for Loaded {
        fn memory(&self) -> Bytes {
            Bytes::from_bytes(self.0 as u64)
        }

        fn load_time(&self) -> Nanos {
            Nanos::ZERO
        }

        fn run(&mut self, inputs: &[Tensor]) -> Result<Inference, RuntimeError> {
            Ok(Inference {
                outputs: inputs.to_vec(),
                duration: Nanos::ZERO,
            })
        }
    }

    impl Runtime for Picky {
        fn name(&self) -> &str {
            self.name
        }

        fn version(&self) -> &str {
            "7"
        }

        fn processors(&self) -> Vec<ProcessorOffer> {
            let offer = |name: &&str| ProcessorOffer {
                name: (*name).to_owned(),
                kind: ProcessorKind::Accelerator,
                numerics: Numerics::F16,
                emulated: false,
                memory: None,
                threads: None,
                pinned_to_cores: None,
            };
            self.processors.iter().map(offer).collect()
        }

        fn supports(
            &self,
            processor: usize,
            _: &Network,
            segment: Segment,
        ) -> Result<(), Unsupported> {
            if processor + 1 == self.processors.len() {
                let reason = format!("it has no Erf,\nwhich layer {} needs", segment.last());
                return Err(Unsupported::because(reason));
            }
            Ok(())
        }

        fn load(
            &mut self,
            processor: usize,
            _: &Arc<Network>,
            _: Segment,
        ) -> Result<Box<dyn Session>, RuntimeError> {
            assert!(processor + 1 < self.processors.len(), "it was not asked");
            Ok(Box::new(Loaded(self.processors.len() * 10 + processor)))
        }
    }

    fn runtimes(named: &[(&'static str, &'static [&'static str])]) -> Vec<Box<dyn Runtime>> {
        named
            .iter()
            .map(|&(name, processors)| Box::new(Picky { name, processors }) as Box<dyn Runtime>)
            .collect()
    }

    fn model() -> ModelWithTwin {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/models/alexnet.onnx");
        let network = Network::open(path.as_ref(), &Default::default()).expect("a model");
        ModelWithTwin::alone(Arc::new(network))
    }

    #[test]
    fn a_device_offers_the_processors_of_all_its_runtimes() {
        let offers: &[(_, &[_])] = &[("one", &["cpu", "dsp"]), ("two", &["gpu", "npu", "tpu"])];
        let mut both = Runtimes::new(runtimes(offers)).expect("different names");
        let told: Vec<(&str, &str, &str)> = both
            .processors()
            .map(|told| {
                let Processor {
                    name,
                    runtime,
                    runtime_version,
                    ..
                } = told;
                (name.as_str(), runtime.as_str(), runtime_version.as_str())
            })
            .collect();
        assert_eq!(
            told,
            [
                ("cpu", "one", "7"),
                ("dsp", "one", "7"),
                ("gpu", "two", "7"),
                ("npu", "two", "7"),
                ("tpu", "two", "7")
            ]
        );
        let model = model();
        for (processor, runtime_and_place) in [("cpu", 20), ("gpu", 30), ("npu", 31)] {
            let session = both.load(processor, &model, Segment::single(1));
            let session = session.expect("it is supported");
            assert_eq!(session.memory(), Bytes::from_bytes(runtime_and_place));
        }
    }

    #[test]
    fn two_processors_of_one_name_are_refused() {
        let offers: &[(_, &[_])] = &[("one", &["cpu", "npu"]), ("two", &["npu"])];
        let error = Runtimes::new(runtimes(offers)).err().expect("one name");
        assert_eq!(
            error.to_string(),
            "both one and two offer a processor `npu`: one of them must rename it"
        );
    }

    #[test]
    fn what_cannot_be_loaded_says_why() {
        let offers: &[(_, &[_])] = &[("one", &["cpu", "npu"])];
        let mut runtimes = Runtimes::new(runtimes(offers)).expect("different names");
        let model = model();
        let layers = model.model().layer_count();
        let beyond = Segment::new(1, layers + 1).expect("a segment");
        for (processor, segment, sentence) in [
            (
                "gpu",
                Segment::single(1),
                "this device has no processor `gpu`: choose one of cpu, npu".to_owned(),
            ),
            (
                "cpu",
                beyond,
                format!("cannot load layers {beyond} on cpu: the network has {layers} layers"),
            ),
            (
                "npu",
                Segment::single(2),
                "npu cannot run layers 2..=2: it has no Erf, which layer 2 needs: place them on another processor"
                    .to_owned(),
            ),
        ] {
            let error = runtimes.load(processor, &model, segment).err();
            assert_eq!(error.expect("it cannot be").to_string(), sentence);
        }
    }
}
