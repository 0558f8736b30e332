//! Kinds of orders of which each begins when the one before has ended: what one processor does warms up the others.

use std::collections::VecDeque;

use layerlab_protocol::Order;

use super::{Interleaved, News, Orders, PlannerError};

/// Steps, one after the other, each of orders that take turns. Orders are numbered through all steps.
pub struct InTurn {
    waiting: VecDeque<Vec<Box<dyn Orders>>>,
    current: Interleaved,
}

impl InTurn {
    /// These steps.
    pub fn new(steps: impl IntoIterator<Item = Vec<Box<dyn Orders>>>) -> InTurn {
        InTurn {
            waiting: steps.into_iter().collect(),
            current: Interleaved::new([]),
        }
    }
}

impl Orders for InTurn {
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError> {
        let mut orders = self.current.next(news)?;
        while orders.is_empty() && self.current.is_over() {
            let Some(step) = self.waiting.pop_front() else {
                break;
            };
            self.current = self.current.followed_by(step);
            orders = self.current.next(&[])?;
        }
        Ok(orders)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Fixed;
    use super::super::tests::{begun, template, told};
    use super::*;

    #[test]
    fn a_step_begins_when_the_one_before_has_ended_and_numbers_go_on() {
        let on = |processor: &str| Order {
            processor: processor.to_owned(),
            ..template()
        };
        let fixed = |orders| -> Box<dyn Orders> { Box::new(Fixed::new(orders)) };
        let mut orders = InTurn::new([
            vec![fixed(vec![on("cpu"), on("cpu")])],
            Vec::new(),
            vec![fixed(vec![on("npu")]), fixed(vec![on("gpu")])],
        ]);
        let named = |orders: Vec<Order>| -> Vec<(u32, String)> {
            orders
                .into_iter()
                .map(|o| (o.number, o.processor))
                .collect()
        };
        let expected = |number, processor: &str| (number, processor.to_owned());
        assert_eq!(
            named(begun(&mut orders)),
            [expected(1, "cpu"), expected(2, "cpu")]
        );
        assert_eq!(told(&mut orders, News::Finished(1)), []);
        let next = named(told(&mut orders, News::Finished(2)));
        assert_eq!(next, [expected(3, "npu"), expected(4, "gpu")]);
        assert_eq!(told(&mut orders, News::Finished(3)), []);
        assert_eq!(told(&mut orders, News::Finished(4)), []);
    }
}
