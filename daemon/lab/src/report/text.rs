//! The report for a terminal.

use jiff::tz::TimeZone;
use layerlab_farm::adb::Printable;

use super::Report;
use crate::text_table::table;

impl Report {
    /// The report for a terminal, with times in `zone`.
    pub fn text(&self, zone: &TimeZone) -> String {
        let mut parts = vec![format!("{}\n{}", self.headline, self.period(zone))];
        for section in self.sections(zone) {
            let rows = section.rows.iter();
            let printable = rows.map(|row| {
                let cells = row
                    .iter()
                    .map(|cell| Printable(&cell.to_string()).to_string());
                cells.collect::<Vec<_>>()
            });
            let table = table(section.heads, section.right, printable);
            parts.push(format!("{}\n{table}", section.title));
        }
        parts.join("\n\n")
    }
}
