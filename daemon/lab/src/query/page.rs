//! Long lists in pages.

/// So many rows are on a page: what people look through at once.
const ROWS: usize = 50;

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    number: usize,
}

impl Page {
    /// The page of this number, from 1.
    pub fn new(number: usize) -> Page {
        Page {
            number: number.max(1),
        }
    }

    /// What of `list` is on it.
    pub fn of<T>(self, list: Vec<T>) -> Vec<T> {
        let skipped = (self.number - 1).saturating_mul(ROWS);
        list.into_iter().skip(skipped).take(ROWS).collect()
    }

    /// Which page it is of a list of `all` things, called `what`, and how to go on with `command`; nothing if the list has
    /// only this one.
    pub fn footer(self, all: usize, what: &str, command: &str) -> Option<String> {
        let pages = all.div_ceil(ROWS).max(1);
        let Page { number } = self;
        if pages == 1 && number == 1 {
            return None;
        }
        let place = format!("page {number} of {pages}, {all} {what} in all");
        Some(match number < pages {
            true => format!("{place}; `{command} --page {}` goes on", number + 1),
            false => place,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_has_pages_that_lead_to_one_another() {
        let list: Vec<usize> = (0..120).collect();
        assert_eq!(Page::new(1).of(list.clone()), (0..50).collect::<Vec<_>>());
        assert_eq!(
            Page::new(3).of(list.clone()),
            (100..120).collect::<Vec<_>>()
        );
        assert!(Page::new(usize::MAX).of(list).is_empty());
        let footer = |number, all| Page::new(number).footer(all, "jobs", "layerlab jobs");
        assert_eq!(footer(1, 50), None);
        let first = footer(1, 120).expect("three pages");
        assert_eq!(
            first,
            "page 1 of 3, 120 jobs in all; `layerlab jobs --page 2` goes on"
        );
        assert_eq!(
            footer(3, 120).expect("the last"),
            "page 3 of 3, 120 jobs in all"
        );
    }
}
