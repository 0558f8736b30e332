//! When the link is idle, as far as a phone can know: by what it carried, and by when answers came.

use std::collections::VecDeque;

use layerlab_profiles::Nanos;

/// No time that comes.
pub(super) const NEVER: Nanos = Nanos::from_nanos(u64::MAX);

/// What is on its way to the server.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveLink {
    idle: Nanos,
    /// Frames that were sent and are not answered, in that order.
    underway: VecDeque<Underway>,
    /// The last frame that was sent, until it was said that the link is idle after it.
    untold: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Underway {
    frame: usize,
    /// When it was given to the link.
    from: Nanos,
    /// How long it occupies the link.
    takes: Nanos,
}

impl LiveLink {
    /// When it is idle if it is given nothing more.
    pub(super) fn idle(&self) -> Nanos {
        self.idle
    }

    /// `frame` was given to it at `from`, and is believed to have left at `left`.
    pub(super) fn send(&mut self, frame: usize, from: Nanos, left: Nanos) {
        let takes = left - self.idle.max(from);
        self.underway.push_back(Underway { frame, from, takes });
        self.untold = Some(frame);
        self.idle = left;
    }

    /// The answer to `frame` has come by `now`, which must therefore have left at `left`: what is behind it left, or leaves, as
    /// much sooner or later.
    pub(super) fn answered(&mut self, frame: usize, left: Nanos, now: Nanos) {
        while let Some(one) = self.underway.pop_front() {
            if one.frame == frame {
                break;
            }
        }
        let behind = self.underway.iter();
        self.idle = match self.underway.is_empty() {
            true => self.idle.min(now),
            false => behind.fold(left, |end, one| end.max(one.from) + one.takes),
        };
    }

    /// It carries nothing any more.
    pub(super) fn lost(&mut self) {
        *self = LiveLink {
            idle: NEVER,
            ..LiveLink::default()
        };
    }

    /// When it is to be said that the link is idle.
    pub(super) fn wake(&self) -> Option<Nanos> {
        self.untold.map(|_| self.idle)
    }

    /// The frame after which the link is idle at `now`, once.
    pub(super) fn tell(&mut self, now: Nanos) -> Option<usize> {
        match self.idle <= now {
            true => self.untold.take(),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    #[test]
    fn an_answer_that_is_late_makes_all_behind_it_late_and_nothing_is_sent_before_it_was_given() {
        let mut link = LiveLink::default();
        link.send(0, ms(0), ms(10));
        link.send(1, ms(2), ms(30));
        assert_eq!((link.idle(), link.wake()), (ms(30), Some(ms(30))));
        // Frame 0 left 5 ms later than was believed.
        link.answered(0, ms(15), ms(20));
        assert_eq!(link.idle(), ms(35));
        assert_eq!(link.tell(ms(34)), None);
        assert_eq!(link.tell(ms(35)), Some(1));
        assert_eq!((link.tell(ms(36)), link.wake()), (None, None));

        // Frame 1 left sooner; frame 2 was given after that.
        link.send(2, ms(40), ms(50));
        link.answered(1, ms(20), ms(41));
        assert_eq!(link.idle(), ms(50));
        // What is answered has left.
        link.answered(2, ms(45), ms(47));
        assert_eq!((link.idle(), link.tell(ms(47))), (ms(47), Some(2)));
    }

    #[test]
    fn a_lost_link_is_never_idle() {
        let mut link = LiveLink::default();
        link.send(0, ms(0), ms(10));
        link.lost();
        assert_eq!((link.idle(), link.wake()), (NEVER, None));
    }
}
