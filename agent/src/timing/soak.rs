//! Keeps a processor busy until its times change no more, and journals them slice by slice (docs/method.md §12).

use layerlab_profiles::Nanos;
use layerlab_profiles::soak::{self, MINUTE, Slice};
use layerlab_profiles::summary::Summary;
use layerlab_protocol::{Conditions, Event, FailureKind, Work};

use super::Timing;
use super::inferences::Inferences;
use super::loaded::LoadedSegment;
use crate::device::Invocation;
use crate::ended::{Ended, failed};

/// How many inferences after a rest say what a cool device takes.
const RESTED_RUNS: u32 = 15;

/// How long each rest is at least: longer than clocks take to fall and rise again.
const LEAST_REST: Nanos = Nanos::from_millis(1_000);

/// And how many times as long as an inference, so that these do not warm the device up.
const REST_OF_INFERENCES: u64 = 40;

/// The fewest inferences of a slice: one of them may be a spike.
const LEAST_RUNS: usize = 3;

/// The inferences of a soak, of which no two have the same name.
struct Runs<'a, 'b> {
    timing: &'a mut Timing<'b>,
    group: Vec<LoadedSegment>,
    done: u64,
}

impl Timing<'_> {
    /// Keeps the processor busy for as long as the order says, from the beginning: what was done before the agent was killed
    /// has cooled off since.
    pub(super) fn soak(&mut self) -> Result<(), Ended> {
        let Work::Soak {
            duration_ns,
            slice_ns,
            rest,
            passes,
            ..
        } = self.blocks.inferences.order().work
        else {
            return Ok(());
        };
        let group = match passes {
            true => self.load_pass()?,
            false => {
                self.blocks.inferences.runtimes.begin_visit();
                vec![self.load_sentinel(&[])?]
            }
        };
        let mut runs = Runs {
            timing: self,
            group,
            done: 0,
        };
        runs.record(Event::SoakBegun)?;
        runs.warm_up()?;
        if rest {
            runs.rested()?;
        }
        let slices = runs.busy(duration_ns, slice_ns)?;
        match soak::steady(&soak::minutes(&slices)) {
            Some(_) => Ok(()),
            None => Err(failed(
                FailureKind::Throttled,
                not_steady(
                    self.blocks.inferences.order().processor.as_str(),
                    duration_ns,
                ),
            )),
        }
    }
}

fn not_steady(processor: &str, duration: Nanos) -> String {
    format!(
        "`{processor}` was kept busy for {} minutes, and its times still changed by more than 2 % over the last six of them, or \
         were too noisy to tell; keep it busy for longer (--steady), and close what else runs on the device",
        duration.as_nanos() / MINUTE.as_nanos()
    )
}

impl Runs<'_, '_> {
    fn record(&self, event: Event) -> Result<(), Ended> {
        self.timing.blocks.inferences.record(event)
    }

    fn warm_up(&mut self) -> Result<(), Ended> {
        let place = self.timing.blocks.segments;
        self.timing
            .blocks
            .inferences
            .warm_up(&mut self.group, place)
    }

    /// One inference. When it began and how long it took.
    fn run(&mut self) -> Result<(Nanos, Nanos), Ended> {
        let inferences = &mut self.timing.blocks.inferences;
        let invocation = Invocation::soak(inferences.seed(), self.done);
        self.done += 1;
        let started = inferences.now();
        let took = inferences.pass_time(&mut self.group, invocation)?;
        Ok((started, took))
    }

    /// Times the model on the device as it is after rests; of two inferences after each the second, because processors sleep
    /// while they idle.
    fn rested(&mut self) -> Result<(), Ended> {
        get_cool(&mut self.timing.blocks.inferences)?;
        let (_, took) = self.run()?;
        let rest = Nanos::from_nanos(took.as_nanos().saturating_mul(REST_OF_INFERENCES));
        for _ in 0..RESTED_RUNS {
            self.timing.blocks.inferences.idle(rest.max(LEAST_REST))?;
            let conditions = self.timing.blocks.inferences.conditions();
            self.run()?;
            let (started_ns, median_ns) = self.run()?;
            self.record(Event::SoakSlice {
                rested: true,
                started_ns,
                runs: 1,
                median_ns,
                conditions: Some(conditions),
            })?;
        }
        Ok(())
    }

    /// Runs the model over and over for so long. The device is looked at once a minute, for that lets it idle.
    fn busy(&mut self, duration: Nanos, slice: Nanos) -> Result<Vec<Slice>, Ended> {
        let mut slices: Vec<Slice> = Vec::new();
        let (mut begin, mut minutes) = (None, 0);
        loop {
            let now = self.timing.blocks.inferences.now();
            let since = now.as_nanos() - begin.unwrap_or(now).as_nanos();
            if since >= duration.as_nanos() {
                return Ok(slices);
            }
            let is_looked_at = since >= minutes * MINUTE.as_nanos();
            minutes = since / MINUTE.as_nanos() + 1;
            let conditions = is_looked_at.then(|| self.timing.blocks.inferences.conditions());
            let (started, median, runs) = self.slice(slice)?;
            begin.get_or_insert(started);
            slices.push(Slice { started, median });
            self.record(Event::SoakSlice {
                rested: false,
                started_ns: started,
                runs,
                median_ns: median,
                conditions,
            })?;
        }
    }

    /// The inferences of one slice: when the first began, their median, and how many there were.
    fn slice(&mut self, length: Nanos) -> Result<(Nanos, Nanos, u64), Ended> {
        let begin = self.timing.blocks.inferences.now();
        let mut times = Vec::new();
        while times.len() < LEAST_RUNS || self.timing.blocks.inferences.now() < begin + length {
            times.push(self.run()?.1);
        }
        let median = Summary::of(&times).map_or(Nanos::ZERO, |summary| summary.median);
        Ok((begin, median, times.len() as u64))
    }
}

/// Rests until the device does not throttle, as long as that may take; it may throttle still then.
pub(super) fn get_cool(inferences: &mut Inferences<'_>) -> Result<(), Ended> {
    let hygiene = inferences.settings.hygiene;
    let begin = inferences.now();
    while throttles(&inferences.conditions())
        && inferences.now() < begin + hygiene.cool_down_deadline_ns
    {
        inferences.idle(hygiene.cool_down_poll_ns)?;
    }
    Ok(())
}

pub(super) fn throttles(conditions: &Conditions) -> bool {
    conditions.thermal_status.unwrap_or(0) > 0
}
