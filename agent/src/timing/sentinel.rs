//! Which segment is the sentinel: the whole model, or the longest segment that the processor runs and holds.
//!
//! The rule looks at the network, the processor and its empty memory alone, so that all orders of a run on one processor
//! have the same sentinel and their blocks compare.

use layerlab_profiles::Segment;
use layerlab_protocol::Event;

use super::Timing;
use super::loaded::{LoadedSegment, NotLoaded};
use crate::ended::Ended;
use crate::runtime::RuntimeError;

impl Timing<'_> {
    /// Loads the sentinel. If it is one of the `candidates`, it has their place.
    pub(super) fn load_sentinel(&mut self, candidates: &[usize]) -> Result<LoadedSegment, Ended> {
        let whole = Segment::whole(self.layers());
        let known = self.known_sentinel();
        let segment = known.unwrap_or(whole);
        match self.load(self.place_among(candidates, segment), segment) {
            Ok(loaded) => Ok(loaded),
            // An order for the whole model cannot be done where memory does not hold it.
            Err(NotLoaded::Full(error)) if known.is_some() || self.segments.contains(&whole) => {
                Err(error.into())
            }
            Err(NotLoaded::Full(error) | NotLoaded::Unsupported(error)) if known.is_none() => {
                let segment = self.longest(error)?;
                self.record_once(Event::Sentinel { segment })?;
                self.sentinel = Some(segment);
                Ok(self.load(self.place_among(candidates, segment), segment)?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The sentinel that is not the whole model, if one was chosen, perhaps by an agent that was killed.
    fn known_sentinel(&self) -> Option<Segment> {
        let history = self.blocks.inferences.task.history.iter();
        let mut journaled = history.filter_map(|event| match event {
            Event::Sentinel { segment } => Some(*segment),
            _ => None,
        });
        self.sentinel.or_else(|| journaled.next())
    }

    fn place_among(&self, candidates: &[usize], segment: Segment) -> Option<usize> {
        let mut candidates = candidates.iter().copied();
        candidates.find(|&place| self.segments[place] == segment)
    }

    /// The longest segment that the processor runs and holds; of several, the first. If there is none, the whole
    /// model's `error`.
    fn longest(&mut self, error: RuntimeError) -> Result<Segment, Ended> {
        let supported = self.longest_that(Timing::fits)?;
        // Most often all that the runtime says it holds is held.
        match supported {
            None => return Err(error.into()),
            Some(segment) if self.is_held(segment)? => return Ok(segment),
            Some(_) => {}
        }
        self.longest_that(Timing::is_held)?
            .ok_or_else(|| error.into())
    }

    /// The longest segment that is `fit`, of several the first. What is part of a fit segment is taken to be fit too,
    /// which saves looking at every segment.
    fn longest_that(
        &mut self,
        fit: impl Fn(&mut Self, Segment) -> Result<bool, Ended>,
    ) -> Result<Option<Segment>, Ended> {
        let layers = self.layers();
        let mut longest: Option<Segment> = None;
        for first in 1..=layers {
            loop {
                let last = first + longest.map_or(0, Segment::layers);
                match Segment::new(first, last) {
                    Ok(segment) if last <= layers && fit(self, segment)? => {
                        longest = Some(segment);
                    }
                    _ => break,
                }
            }
        }
        Ok(longest)
    }

    fn fits(&mut self, segment: Segment) -> Result<bool, Ended> {
        let inferences = &mut self.blocks.inferences;
        let processor = &inferences.task.order.processor;
        is_there(
            inferences
                .runtimes
                .fits(processor, &inferences.model, segment),
        )
    }

    fn is_held(&mut self, segment: Segment) -> Result<bool, Ended> {
        let inferences = &mut self.blocks.inferences;
        let processor = &inferences.task.order.processor;
        is_there(
            inferences
                .runtimes
                .load_timed(processor, &inferences.model, segment),
        )
    }
}

/// Whether a segment can be run or loaded; other errors end the order.
fn is_there<T>(answer: Result<T, RuntimeError>) -> Result<bool, Ended> {
    match answer {
        Ok(_) => Ok(true),
        Err(RuntimeError::Unsupported { .. } | RuntimeError::OutOfMemory { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
