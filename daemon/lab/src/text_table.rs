//! Tables for a terminal.

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};

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
