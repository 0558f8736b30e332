//! Orders that are known from the start.

use std::collections::VecDeque;

use layerlab_protocol::Order;

use super::{News, Orders, PlannerError};

/// How many orders an agent holds at most: enough that it never waits for the next one, few enough that
/// submitting them again after a lost link takes no time.
const AHEAD: usize = 8;

/// Orders that are known from the start. A few at a time are handed out, and one more as one is done.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    waiting: VecDeque<Order>,
    open: usize,
    most_open: usize,
}

impl Fixed {
    /// A plan of `orders` and no others.
    pub fn new(orders: Vec<Order>) -> Fixed {
        Fixed {
            waiting: orders.into(),
            open: 0,
            most_open: AHEAD,
        }
    }

    /// The same beside orders of other kinds, with which they take turns.
    pub fn one_at_a_time(orders: Vec<Order>) -> Fixed {
        Fixed {
            most_open: 1,
            ..Fixed::new(orders)
        }
    }
}

impl Orders for Fixed {
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError> {
        let is_finished = |event: &&News| matches!(event, News::Finished(_));
        let finished = news.iter().filter(is_finished).count();
        self.open = self.open.saturating_sub(finished);
        let more = self
            .most_open
            .saturating_sub(self.open)
            .min(self.waiting.len());
        self.open += more;
        Ok(self.waiting.drain(..more).collect())
    }
}
