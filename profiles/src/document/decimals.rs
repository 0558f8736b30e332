//! Numbers with no more digits than are published: none that another machine's arithmetic would give otherwise.

/// To whole multiples of 1 / `per_unit`.
pub(super) fn round(value: f64, per_unit: f64) -> f64 {
    (value * per_unit).round() / per_unit
}
