//! A table in Markdown.

/// A table with these heads; every column but the first is set to the right.
pub fn markdown(heads: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| cell.chars().count())
            .chain([heads[column].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let mut line = String::from("|");
        for (column, cell) in cells.iter().enumerate() {
            let width = widths[column];
            line.push_str(&match column {
                0 => format!(" {cell:<width$} |"),
                _ => format!(" {cell:>width$} |"),
            });
        }
        line.push('\n');
        line
    };
    let rule: Vec<String> = widths
        .iter()
        .enumerate()
        .map(|(column, &width)| match column {
            0 => "-".repeat(width),
            _ => format!("{}:", "-".repeat(width - 1)),
        })
        .collect();
    let mut table = line(heads.to_vec());
    table.push_str(&line(rule.iter().map(String::as_str).collect()));
    for row in rows {
        table.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    table
}
