//! What was made and may be asked for again: the last that was used, and of the others as much as a number of bytes holds.

use std::collections::VecDeque;

/// Values with the memory that they take, the one used longest ago first.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    most_bytes: u64,
    values: VecDeque<(u64, T)>,
}

impl<T> Kept<T> {
    /// Keeps the value that was used last, and others of `most_bytes` bytes in all.
    pub(crate) fn new(most_bytes: u64) -> Self {
        Kept {
            most_bytes,
            values: VecDeque::new(),
        }
    }

    /// The value of which `is_wanted` holds. It is used.
    pub(crate) fn find(&mut self, is_wanted: impl Fn(&T) -> bool) -> Option<&T> {
        let place = self.values.iter().position(|(_, value)| is_wanted(value))?;
        let found = self.values.remove(place)?;
        self.values.push_back(found);
        self.values.back().map(|(_, value)| value)
    }

    /// Forgets the values of which `is_over` holds.
    pub(crate) fn forget(&mut self, is_over: impl Fn(&T) -> bool) {
        self.values.retain(|(_, value)| !is_over(value));
    }

    /// Forgets those that were used longest ago until the others may be kept beside one more.
    pub(crate) fn make_room(&mut self) {
        while self.values.iter().map(|(bytes, _)| bytes).sum::<u64>() > self.most_bytes {
            self.values.pop_front();
        }
    }

    /// Keeps a value of so many bytes, which is used.
    pub(crate) fn keep(&mut self, bytes: u64, value: T) {
        self.make_room();
        self.values.push_back((bytes, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(values: &Kept<u32>) -> Vec<u32> {
        values.values.iter().map(|(_, value)| *value).collect()
    }

    #[test]
    fn what_was_used_longest_ago_is_forgotten_first() {
        let mut values = Kept::new(10);
        for value in [1, 2, 3] {
            values.keep(5, value);
        }
        assert_eq!(kept(&values), [1, 2, 3]);
        assert_eq!(values.find(|value| *value == 1), Some(&1));
        assert_eq!(values.find(|value| *value == 4), None);
        values.keep(1, 4);
        assert_eq!(kept(&values), [3, 1, 4]);
    }

    #[test]
    fn the_last_that_was_used_is_kept_however_large_it_is() {
        let mut values = Kept::new(10);
        values.keep(1, 1);
        values.keep(100, 2);
        assert_eq!(kept(&values), [1, 2]);
        values.keep(1, 3);
        assert_eq!(kept(&values), [3]);
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let mut values = Kept::new(10);
        values.keep(1, 1);
        values.keep(1, 2);
        values.forget(|value| *value == 1);
        assert_eq!(kept(&values), [2]);
    }
}
