//! What a simulated device has drawn, as far back as its gauge still looks.

use std::collections::VecDeque;

use layerlab_profiles::Nanos;

/// What a device has drawn until now, as far back as its gauge still looks.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    /// When the power changed last, and the energy in joules until then. The power is the same between two of them.
    until: VecDeque<(Nanos, f64)>,
    watts: f64,
}

impl Drawing {
    /// Since it was told last, until now, the device drew so many watts.
    pub(super) fn pass(&mut self, now: Nanos, watts: f64) {
        let (at, joules) = self.until.back().copied().unwrap_or_default();
        if now <= at {
            return;
        }
        let joules = joules + watts * (now - at).as_nanos() as f64 / 1e9;
        if self.until.len() > 1 && self.watts.to_bits() == watts.to_bits() {
            self.until.pop_back();
        } else if self.until.is_empty() {
            self.until.push_back((at, 0.0));
        }
        self.watts = watts;
        self.until.push_back((now, joules));
    }

    /// The energy in joules until some moment that was passed.
    pub(super) fn joules(&self, at: Nanos) -> f64 {
        let after = self.until.partition_point(|&(until, _)| until < at);
        match (
            after.checked_sub(1).map(|one| self.until[one]),
            self.until.get(after),
        ) {
            (Some((begin, least)), Some(&(end, most))) => {
                let share = (at - begin).as_nanos() as f64 / (end - begin).as_nanos() as f64;
                least + (most - least) * share
            }
            (Some((_, joules)), None) | (None, Some(&(_, joules))) => joules,
            (None, None) => 0.0,
        }
    }

    /// Forgets what was before some moment.
    pub(super) fn forget(&mut self, before: Nanos) {
        while self.until.len() > 2 && self.until[1].0 < before {
            self.until.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_drawn_is_known_between_changes() {
        let mut drawing = Drawing::default();
        let at = Nanos::from_millis;
        drawing.pass(at(1_000), 2.0);
        drawing.pass(at(1_500), 2.0);
        drawing.pass(at(2_500), 5.0);
        assert_eq!(drawing.until.len(), 3, "what is the same is kept once");
        for (millis, joules) in [
            (0, 0.0),
            (500, 1.0),
            (1_500, 3.0),
            (2_000, 5.5),
            (2_500, 8.0),
        ] {
            assert_eq!(drawing.joules(at(millis)), joules, "{millis}");
        }
        drawing.forget(at(2_000));
        assert_eq!(drawing.joules(at(2_000)), 5.5);
    }
}
