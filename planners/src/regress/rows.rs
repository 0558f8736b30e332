//! A table of numbers, row after row in one piece of memory.

/// Rows of equally many features.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    columns: usize,
    values: Vec<f64>,
}

impl Rows {
    /// No rows of `columns` features.
    ///
    /// # Panics
    /// When `columns` is 0.
    pub fn new(columns: usize) -> Rows {
        assert!(columns > 0, "a row has at least one feature");
        Rows {
            columns,
            values: Vec::new(),
        }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// When it has another number of features.
    pub fn push(&mut self, row: &[f64]) {
        self.push_with(|values| values.extend_from_slice(row));
    }

    /// Appends a row that `write` appends to the values.
    ///
    /// # Panics
    /// When it has another number of features.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<f64>)) {
        let before = self.values.len();
        write(&mut self.values);
        assert_eq!(
            self.values.len() - before,
            self.columns,
            "rows are equally long"
        );
    }

    /// How many features a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.values.len() / self.columns
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The rows, in order.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, f64> {
        self.values.chunks_exact(self.columns)
    }

    /// The rows, to be changed in place.
    pub fn iter_mut(&mut self) -> std::slice::ChunksExactMut<'_, f64> {
        self.values.chunks_exact_mut(self.columns)
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The rows at these places, in this order.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn at(&self, places: &[usize]) -> Rows {
        let mut rows = Rows::new(self.columns);
        for &place in places {
            rows.push(&self.values[place * self.columns..][..self.columns]);
        }
        rows
    }
}
