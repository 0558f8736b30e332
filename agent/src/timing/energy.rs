//! Reads a power meter while each segment is run over and over, and while the device idles in between (docs/method.md §13).

use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::{Event, FailureKind, Work};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::Timing;
use super::loaded::LoadedSegment;
use super::soak::{get_cool, throttles};
use crate::device::{Invocation, MeterError, PowerMeter};
use crate::ended::{Ended, failed};

/// So long the device idles before the meter is looked at again.
const IDLE_SLICE: Nanos = Nanos::from_millis(100);

impl From<MeterError> for Ended {
    fn from(error: MeterError) -> Self {
        failed(FailureKind::Device, error.to_string())
    }
}

/// The windows of an order.
struct Windows<'a, 'b> {
    timing: &'a mut Timing<'b>,
    meter: Box<dyn PowerMeter>,
    length: Nanos,
    /// How many inferences there were: no two have the same name.
    runs: u64,
}

impl Timing<'_> {
    /// Visits each segment once, in an order drawn anew, from the beginning: what was measured before the agent was killed
    /// may have been of another state of the device.
    pub(super) fn energy(&mut self) -> Result<(), Ended> {
        let inferences = &mut self.blocks.inferences;
        let Work::MeasureEnergy {
            meter, window_ns, ..
        } = &inferences.task.order.work
        else {
            return Ok(());
        };
        let meter = inferences.device.power_meter(meter)?;
        let length = *window_ns;
        let mut places: Vec<usize> = (0..self.segments.len()).collect();
        places.shuffle(&mut ChaCha8Rng::seed_from_u64(
            self.blocks.inferences.seed(),
        ));
        let mut windows = Windows {
            timing: self,
            meter,
            length,
            runs: 0,
        };
        let meter = windows.meter.meter();
        windows.record(Event::EnergyBegun { meter })?;
        if places.is_empty() {
            return Ok(());
        }
        windows.timing.blocks.inferences.runtimes.begin_visit();
        get_cool(&mut windows.timing.blocks.inferences)?;
        windows.idle()?;
        for place in places {
            windows.visit(place)?;
        }
        Ok(())
    }
}

impl Windows<'_, '_> {
    fn record(&self, event: Event) -> Result<(), Ended> {
        self.timing.blocks.inferences.record(event)
    }

    fn now(&mut self) -> Nanos {
        self.timing.blocks.inferences.now()
    }

    /// Measures a segment, and the idle device after it. Where the device throttled, both are measured again once it is cool.
    fn visit(&mut self, place: usize) -> Result<(), Ended> {
        let segment = self.timing.segments[place];
        let mut group = [self.timing.load(Some(place), segment)?];
        self.timing.blocks.inferences.warm_up(&mut group, place)?;
        let hygiene = self.timing.blocks.inferences.settings.hygiene;
        for _ in 0..=hygiene.redos {
            let busy = self.busy(&mut group)?;
            let conditions = self.timing.blocks.inferences.conditions();
            if hygiene.throttling_counts || !throttles(&conditions) {
                self.record(busy)?;
                return self.idle();
            }
            get_cool(&mut self.timing.blocks.inferences)?;
            self.idle()?;
        }
        let processor = self.timing.blocks.inferences.order().processor.clone();
        let message = format!(
            "`{processor}` throttled whenever layers {segment} were run for {}; cool the device, or measure its energy with a \
             shorter --energy",
            self.length
        );
        Err(failed(FailureKind::Throttled, message))
    }

    fn idle(&mut self) -> Result<(), Ended> {
        let idle = self.window(None, |timing, _| {
            timing.blocks.inferences.idle(IDLE_SLICE)?;
            Ok(0)
        })?;
        self.record(idle)
    }

    fn busy(&mut self, group: &mut [LoadedSegment; 1]) -> Result<Event, Ended> {
        let segment = group[0].segment;
        self.window(Some(segment), |timing, run| {
            let inferences = &mut timing.blocks.inferences;
            let invocation = Invocation::energy(inferences.seed(), run);
            inferences.run(&mut group[0], invocation)?;
            if !inferences.is_wanted() {
                return Err(Ended::Abandoned);
            }
            Ok(1)
        })
    }

    /// Reads the meter while the device does something again and again, once that shows.
    fn window(
        &mut self,
        segment: Option<Segment>,
        mut act: impl FnMut(&mut Timing<'_>, u64) -> Result<u64, Ended>,
    ) -> Result<Event, Ended> {
        let settled = self.now() + self.meter.meter().settle_ns;
        while self.now() < settled {
            self.runs += act(self.timing, self.runs)?;
            let now = self.now();
            self.meter.poll(now)?;
        }
        let (started, before) = (self.now(), self.runs);
        self.meter.begin(started)?;
        loop {
            self.runs += act(self.timing, self.runs)?;
            let now = self.now();
            if now >= started + self.length {
                let drawn = self.meter.end(now)?;
                return Ok(Event::EnergyWindow {
                    segment,
                    started_ns: started,
                    duration_ns: now - started,
                    runs: self.runs - before,
                    energy_nj: drawn.energy,
                    readings: drawn.readings,
                    scatter_uw: drawn.scatter_uw,
                    step_uw: drawn.step_uw,
                });
            }
            self.meter.poll(now)?;
        }
    }
}
