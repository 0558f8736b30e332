//! Orders of several kinds in turns, so that what drifts with time falls on all alike.

use std::collections::BTreeMap;

use layerlab_protocol::Order;

use super::{News, Orders, PlannerError};

/// Orders of several kinds, as each of them has one to give. They are numbered as they come, from 1, and an agent works
/// them off in that order. A part that waits for another is asked again whenever no order is open.
pub struct Interleaved {
    parts: Vec<Box<dyn Orders>>,
    /// The part that each open order is of, by the order's number.
    open: BTreeMap<u32, usize>,
    next_number: u32,
}

impl Interleaved {
    /// These parts.
    pub fn new(parts: impl IntoIterator<Item = Box<dyn Orders>>) -> Interleaved {
        Interleaved {
            parts: parts.into_iter().collect(),
            open: BTreeMap::new(),
            next_number: 1,
        }
    }

    /// Whether all orders that it gave are done.
    pub(super) fn is_over(&self) -> bool {
        self.open.is_empty()
    }

    /// These parts, whose orders are numbered after those of this one.
    pub(super) fn followed_by(&self, parts: Vec<Box<dyn Orders>>) -> Interleaved {
        Interleaved {
            next_number: self.next_number,
            ..Interleaved::new(parts)
        }
    }

    /// Tells a part some news, and numbers the orders that it gives.
    fn tell(&mut self, part: usize, news: &[News]) -> Result<Vec<Order>, PlannerError> {
        let mut orders = self.parts[part].next(news)?;
        for order in &mut orders {
            order.number = self.next_number;
            self.next_number += 1;
            self.open.insert(order.number, part);
        }
        Ok(orders)
    }
}

impl Orders for Interleaved {
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError> {
        let mut orders = Vec::new();
        for event in news {
            // What comes is about the order that the agent works on.
            let Some((&working_on, &owner)) = self.open.first_key_value() else {
                break;
            };
            if matches!(event, News::Finished(finished) if *finished == working_on) {
                self.open.remove(&working_on);
            }
            if let News::Sample(sample) = event {
                let until = sample.started + sample.duration;
                for part in (0..self.parts.len()).filter(|&part| part != owner) {
                    orders.extend(self.tell(part, &[News::Elsewhere { until }])?);
                }
            }
            orders.extend(self.tell(owner, std::slice::from_ref(event))?);
        }
        if self.open.is_empty() {
            for part in 0..self.parts.len() {
                orders.extend(self.tell(part, &[])?);
            }
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
    fn parts_take_turns_and_orders_are_numbered_once() {
        let on = |processor: &str| Order {
            processor: processor.to_owned(),
            ..template()
        };
        let parts: [Box<dyn Orders>; 2] = [
            Box::new(Fixed::one_at_a_time(vec![on("cpu"), on("cpu"), on("cpu")])),
            Box::new(Fixed::one_at_a_time(vec![on("npu"), on("npu")])),
        ];
        let mut interleaved = Interleaved::new(parts);
        let named = |orders: Vec<Order>| -> Vec<(u32, String)> {
            orders
                .into_iter()
                .map(|o| (o.number, o.processor))
                .collect()
        };
        let expected = |number, processor: &str| (number, processor.to_owned());
        let mut all = named(begun(&mut interleaved));
        for number in 1..=5 {
            all.extend(named(told(&mut interleaved, News::Finished(number))));
        }
        let processors = ["cpu", "npu", "cpu", "npu", "cpu"];
        let wanted: Vec<_> = (1..).zip(processors).map(|(n, p)| expected(n, p)).collect();
        assert_eq!(all, wanted);
    }
}
