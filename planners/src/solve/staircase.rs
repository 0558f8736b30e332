//! What no other placement beats: the higher the cost, the more is gained.

/// A step of a staircase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step<T> {
    pub(crate) cost: i64,
    pub(crate) gain: f64,
    pub(crate) of: T,
}

/// Steps of which none costs at most as much and gains at least as much as another: ascending in both.
#[derive(Clone, Debug)]
pub(crate) struct Staircase<T>(Vec<Step<T>>);

impl<T: Copy + Ord> Staircase<T> {
    pub(crate) fn new() -> Staircase<T> {
        Staircase(Vec::new())
    }

    pub(crate) fn steps(&self) -> &[Step<T>] {
        &self.0
    }

    /// Whether a step gains more than `gain` at a cost of `cost` or less, or as much at less cost.
    pub(crate) fn beats(&self, cost: i64, gain: f64) -> bool {
        let within = self.0.partition_point(|step| step.cost <= cost);
        let best = within.checked_sub(1).map(|place| self.0[place]);
        best.is_some_and(|best| best.gain > gain || best.gain == gain && best.cost < cost)
    }

    /// Adds a step, unless another beats it, and removes those that it beats. Of equal ones the least stays, so that the
    /// order in which they come does not matter.
    pub(crate) fn offer(&mut self, step: Step<T>) -> bool {
        if step.gain.is_nan() || self.beats(step.cost, step.gain) {
            return false;
        }
        let begin = self.0.partition_point(|other| other.cost < step.cost);
        let same = |other: &Step<T>| other.cost == step.cost && other.gain == step.gain;
        if let Some(equal) = self.0.get_mut(begin).filter(|other| same(other)) {
            let is_less = step.of < equal.of;
            if is_less {
                *equal = step;
            }
            return is_less;
        }
        let beaten = self.0[begin..].partition_point(|other| other.gain <= step.gain);
        self.0.splice(begin..begin + beaten, [step]);
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_steps_are_those_that_nothing_offered_beats(
            offered in prop::collection::vec((0..12_i64, 0..12_u8), 0..60)
        ) {
            let mut staircase = Staircase::new();
            for (place, &(cost, gain)) in offered.iter().enumerate() {
                staircase.offer(Step { cost, gain: f64::from(gain), of: place % 7 });
            }
            let beats = |a: &(i64, u8), b: &(i64, u8)| a != b && a.0 <= b.0 && a.1 >= b.1;
            let mut best: Vec<(i64, u8)> = offered.clone();
            best.retain(|one| !offered.iter().any(|other| beats(other, one)));
            best.sort_unstable();
            best.dedup();
            let found: Vec<(i64, u8)> = staircase.steps().iter().map(|s| (s.cost, s.gain as u8)).collect();
            prop_assert_eq!(&found, &best);
            for step in staircase.steps() {
                let equal = offered.iter().enumerate().filter(|(_, o)| **o == (step.cost, step.gain as u8));
                prop_assert_eq!(Some(step.of), equal.map(|(place, _)| place % 7).min());
            }
        }
    }
}
