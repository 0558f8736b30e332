//! Takes a journal in, entry by entry: what was measured, which orders are open, and what follows from it.

use std::collections::BTreeMap;

use layerlab_profiles::document::{
    Block, BlockEnd, Disturbance, Load, Measured, ProbeSample, Rejected, Sample, SoakPhase,
    SoakRow, SoakState, Unsupported,
};
use layerlab_profiles::{Nanos, Probe, Segment, document};
use layerlab_protocol::{Conditions, Entry, Event, Order, RunId};

use super::RunError;
use crate::orders::{News, Orders, PlannerError};

/// What has come so far.
pub(super) struct JournalIntake<'a> {
    pub(super) run: &'a RunId,
    /// The number of the last entry.
    pub(super) received: u64,
    /// Orders without a final entry, by number.
    pub(super) open: BTreeMap<u32, Order>,
    pub(super) orders: &'a mut dyn Orders,
    pub(super) measured: Measured,
    /// The models that are probes, by their SHA-256.
    probes: &'a BTreeMap<String, Probe>,
    /// How long the device has rested since the last block started.
    rested: Nanos,
    /// How the block in progress started.
    started: Option<BlockEnd>,
    /// The samples of the block in progress; orders and their blocks come one after the other.
    block: Vec<Sample>,
}

impl<'a> JournalIntake<'a> {
    /// Nothing has come of `run` yet; what `orders` wants first is open.
    pub(super) fn new(
        run: &'a RunId,
        orders: &'a mut dyn Orders,
        probes: &'a BTreeMap<String, Probe>,
    ) -> Result<JournalIntake<'a>, PlannerError> {
        let open = orders.next(&[])?.into_iter();
        Ok(JournalIntake {
            run,
            received: 0,
            open: open.map(|order| (order.number, order)).collect(),
            orders,
            measured: Measured::default(),
            probes,
            rested: Nanos::ZERO,
            started: None,
            block: Vec::new(),
        })
    }

    /// Takes one entry in, and returns the orders that follow from it.
    pub(super) fn take(&mut self, entry: Entry) -> Result<Vec<Order>, RunError> {
        let expected = self.received + 1;
        if entry.sequence != expected {
            return Err(RunError::Gap {
                expected,
                found: entry.sequence,
            });
        }
        self.received = expected;
        let sample = self.sample(&entry);
        let before = self.started.as_ref().map(|started| started.sentinel);
        let mut news = News::of(entry.order, &entry.event, sample.as_ref(), before);
        let probe = self.probe_of(entry.order);
        self.block.extend(sample);
        match entry.event {
            // A probe says nothing about the model: neither what of it cannot run nor what loading it takes.
            Event::Unsupported { .. } | Event::Loaded { .. } | Event::Sentinel { .. }
                if probe.is_some() => {}
            Event::Failed { failure } if probe.is_some() => {
                tracing::warn!(
                    order = entry.order,
                    failure = failure.message,
                    "a probe was not timed"
                );
                self.open.remove(&entry.order);
                self.block.clear();
                news = Some(News::Finished(entry.order));
            }
            Event::Unsupported {
                processor,
                segment,
                reason,
                needed_bytes,
            } => self.measured.unsupported.push(Unsupported {
                processor,
                segment,
                reason,
                needed: needed_bytes,
            }),
            Event::Loaded {
                processor,
                segment,
                load_ns,
                memory_bytes,
                compiled,
                placed,
            } => {
                let proved = placed.map(|placed| placed.proofs(&processor, segment));
                self.measured
                    .placements
                    .extend(proved.into_iter().flatten());
                self.measured.loads.push(Load {
                    processor,
                    segment,
                    duration: load_ns,
                    memory: memory_bytes,
                    compiled,
                });
            }
            Event::Sentinel { segment } => {
                if let Some(processor) = self.processor_of(entry.order, segment) {
                    self.measured.sentinels.insert(processor, segment);
                }
            }
            Event::SoakBegun => self.measured.soak.retain(|row| row.order != entry.order),
            Event::SoakSlice {
                rested,
                started_ns,
                runs,
                median_ns,
                conditions,
            } => {
                if let Some(open) = self.open.get(&entry.order) {
                    self.measured.soak.push(SoakRow {
                        processor: open.processor.clone(),
                        order: entry.order,
                        phase: match rested {
                            true => SoakPhase::Rested,
                            false => SoakPhase::Busy,
                        },
                        started: started_ns,
                        runs,
                        median: median_ns,
                        state: conditions.map_or_else(SoakState::default, soak_state),
                    });
                }
            }
            Event::EnergyBegun { meter } => {
                self.measured.energy.retain(|row| row.order != entry.order);
                self.measured.meter = Some(meter);
            }
            event @ Event::EnergyWindow { .. } => {
                if let Some(open) = self.open.get(&entry.order) {
                    let window = event.energy_window(&open.processor, entry.order);
                    self.measured.energy.extend(window);
                }
            }
            Event::CooledDown { rested_ns, .. } => self.rested = self.rested + rested_ns,
            Event::BlockStarted {
                sentinel_ns,
                conditions,
                ..
            } => {
                self.started = Some(BlockEnd {
                    sentinel: sentinel_ns,
                    conditions: conditions.into(),
                });
            }
            Event::BlockEnded {
                block,
                sentinel_ns,
                conditions,
                rejection,
                disturbance,
            } => {
                let after = BlockEnd {
                    sentinel: sentinel_ns,
                    conditions: conditions.into(),
                };
                if let Some(rejection) = &rejection {
                    tracing::warn!(%rejection, "a block was rejected");
                }
                let reason = rejection.as_ref().map(Rejected::from);
                let became = (reason, disturbance.map(Disturbance::from));
                self.end_block(entry.order, block, after, became)?;
            }
            Event::Finished => {
                self.open.remove(&entry.order);
            }
            Event::Failed { failure } => {
                return Err(RunError::Order {
                    kind: failure.kind,
                    message: failure.message,
                });
            }
            _ => {}
        }
        let orders = match news {
            Some(news) => self.orders.next(&[news])?,
            None => Vec::new(),
        };
        self.open
            .extend(orders.iter().map(|order| (order.number, order.clone())));
        Ok(orders)
    }

    /// The entry as a sample, if it is one of an order that is open.
    fn sample(&self, entry: &Entry) -> Option<Sample> {
        let Event::Sample {
            block,
            index,
            segment,
            started_ns,
            duration_ns,
        } = entry.event
        else {
            return None;
        };
        Some(Sample {
            processor: self.processor_of(entry.order, segment)?,
            segment,
            order: entry.order,
            block,
            index,
            started: started_ns,
            duration: duration_ns,
        })
    }

    /// The probe that an open order is for, if it is for one.
    fn probe_of(&self, order: u32) -> Option<Probe> {
        self.probes
            .get(&self.open.get(&order)?.model_sha256)
            .copied()
    }

    /// The processor on which an order that is open runs `segment`.
    fn processor_of(&self, order: u32, segment: Segment) -> Option<String> {
        let order = self.open.get(&order)?;
        Some(order.processor_of(segment).to_owned())
    }

    /// Files the samples of the block in progress under what became of it.
    fn end_block(
        &mut self,
        order: u32,
        number: u32,
        after: BlockEnd,
        (rejection, disturbance): (Option<Rejected>, Option<Disturbance>),
    ) -> Result<(), RunError> {
        let samples = std::mem::take(&mut self.block);
        let rested = std::mem::replace(&mut self.rested, Nanos::ZERO);
        let (Some(before), Some(open)) = (self.started.take(), self.open.get(&order)) else {
            return Err(RunError::NeverStarted {
                order,
                block: number,
            });
        };
        if let Some(probe) = self.probes.get(&open.model_sha256) {
            let samples = samples.into_iter().map(|sample| ProbeSample {
                processor: sample.processor,
                probe: *probe,
                layer: sample.segment.first(),
                order: sample.order,
                block: sample.block,
                index: sample.index,
                started: sample.started,
                duration: sample.duration,
                rejection,
            });
            self.measured.probes.extend(samples);
            return Ok(());
        }
        self.measured.blocks.push(Block {
            processor: open.processor.clone(),
            order,
            number,
            rested,
            before,
            after,
            rejection,
            disturbance,
        });
        match rejection {
            None => self.measured.samples.extend(samples),
            Some(_) => self.measured.rejected.extend(samples),
        }
        Ok(())
    }
}

/// What of the state of a device is kept of the time in which it is kept busy.
fn soak_state(conditions: Conditions) -> SoakState {
    let conditions: document::Conditions = conditions.into();
    SoakState {
        thermal_status: conditions.thermal_status,
        temperature_millicelsius: conditions.temperature_millicelsius,
        skin_temperature_millicelsius: conditions.skin_temperature_millicelsius,
        frequencies_khz: conditions.frequencies_khz,
    }
}
