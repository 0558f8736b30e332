//! Holm's step-down method (1979): where many things are tested and none of them is so, the chance that any is said to be
//! is no more than the level, however the tests depend on each other.

/// Adjusts p-values for being many: the smallest of m times m, the next times m - 1, and so on, none smaller than the one
/// before.
pub(crate) fn adjust<'a>(p_values: impl IntoIterator<Item = &'a mut f64>) {
    let mut tested: Vec<&mut f64> = p_values.into_iter().collect();
    tested.sort_by(|one, other| one.total_cmp(other));
    let count = tested.len();
    let mut largest = 0.0_f64;
    for (rank, p) in tested.into_iter().enumerate() {
        largest = largest.max((*p * (count - rank) as f64).min(1.0));
        *p = largest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holm's own steps: 0.01 · 4, 0.02 · 3, 0.03 · 2 and 0.9.
    #[test]
    fn each_is_multiplied_by_how_many_are_left_and_none_falls_below_the_one_before() {
        let mut p = [0.03, 0.9, 0.01, 0.02];
        adjust(&mut p);
        for (found, expected) in p.iter().zip([0.06, 0.9, 0.04, 0.06]) {
            assert!((found - expected).abs() < 1e-12, "{p:?}");
        }
        let mut many = [0.5, 0.4];
        adjust(&mut many);
        assert_eq!(many, [0.8, 0.8]);
    }
}
