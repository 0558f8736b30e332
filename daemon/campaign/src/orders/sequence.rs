//! Orders of one kind after those of another.

use std::collections::{BTreeSet, VecDeque};

use layerlab_protocol::Order;

use super::{News, Orders, PlannerError};

/// One kind of orders after the other: those of the next begin when those of the one before are done.
/// They are numbered as they come, from 1.
pub struct Sequence {
    parts: VecDeque<Box<dyn Orders>>,
    open: BTreeSet<u32>,
    next_number: u32,
}

impl Sequence {
    /// These parts, in order.
    pub fn new(parts: impl IntoIterator<Item = Box<dyn Orders>>) -> Sequence {
        Sequence {
            parts: parts.into_iter().collect(),
            open: BTreeSet::new(),
            next_number: 1,
        }
    }
}

impl Orders for Sequence {
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError> {
        for event in news {
            if let News::Finished(order) = event {
                self.open.remove(order);
            }
        }
        let mut news = news;
        while let Some(part) = self.parts.front_mut() {
            let mut orders = part.next(news)?;
            for order in &mut orders {
                order.number = self.next_number;
                self.next_number += 1;
                self.open.insert(order.number);
            }
            if !self.open.is_empty() {
                return Ok(orders);
            }
            self.parts.pop_front();
            // What has come was about the part that is over.
            news = &[];
        }
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Fixed;
    use super::super::tests::{begun, template, told};
    use super::*;

    #[test]
    fn parts_come_one_after_the_other_and_orders_are_numbered_once() {
        let parts: [Box<dyn Orders>; 2] = [
            Box::new(Fixed::new(vec![template(), template()])),
            Box::new(Fixed::new(vec![template()])),
        ];
        let mut sequence = Sequence::new(parts);
        let numbers = |orders: Vec<Order>| orders.iter().map(|o| o.number).collect::<Vec<_>>();
        assert_eq!(numbers(begun(&mut sequence)), [1, 2]);
        assert!(told(&mut sequence, News::Finished(1)).is_empty());
        assert_eq!(numbers(told(&mut sequence, News::Finished(2))), [3]);
        assert!(told(&mut sequence, News::Finished(3)).is_empty());
    }
}
