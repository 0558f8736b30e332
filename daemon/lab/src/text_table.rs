//! Tables for a terminal, and what stands in tables.

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};
use layerlab_profiles::summary::Estimate;

/// One row of a table.
pub type Cells = Vec<String>;

/// A table with the given heads; the columns in `right` hold numbers.
pub fn table(heads: &[&str], right: &[usize], rows: impl IntoIterator<Item = Cells>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(
        heads
            .iter()
            .map(|head| Cell::new(head).add_attribute(Attribute::Bold)),
    );
    table.add_rows(rows);
    for &column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // Columns are padded to their width; nobody needs the spaces at the end of a line.
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// A value with half the width of its 95 % interval; a question mark when the interval contains zero.
pub fn estimate(estimate: &Estimate) -> String {
    let mark = if estimate.is_unresolved() { "? " } else { "" };
    match estimate.ci95 {
        None => estimate.value.to_string(),
        Some((low, high)) => {
            format!("{mark}{} ± {}", estimate.value, (high - low).half())
        }
    }
}

/// Below this a p-value is only said to be so: what is far smaller is no number of a computer any more.
const LEAST_P: f64 = 1e-300;

/// A p-value in three digits.
pub fn p_value(p: f64) -> String {
    match p < LEAST_P {
        true => format!("< {LEAST_P:.0e}"),
        false => format!("{p:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_p_value_is_never_said_to_be_zero() {
        for (p, words) in [
            (0.0, "< 1e-300"),
            (1.5e-300, "1.50e-300"),
            (0.0489, "4.89e-2"),
            (1.0, "1.00e0"),
        ] {
            assert_eq!(p_value(p), words);
        }
    }
}
