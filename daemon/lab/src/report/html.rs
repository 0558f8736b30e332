//! A report as one HTML file that needs no other.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{JobReport, Report, RunReport, Section};
use layerlab_farm::adb::Printable;

const STYLE: &str = include_str!("style.css");

/// Even if markup came in by some name, it could neither run nor fetch anything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

impl Report {
    /// The report as an HTML document, with times in `zone` and the plots that were read.
    pub fn html(&self, zone: &TimeZone) -> String {
        let sections = self.sections(zone);
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    title { "layerlab: " (self.headline) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    h1 { (self.headline) }
                    p.period { (self.period(zone)) }
                    @if sections.is_empty() {
                        p { "Nothing happened." }
                    }
                    @for section in &sections { (table(section)) }
                    (self.plots())
                }
            }
        };
        page.into_string()
    }

    fn plots(&self) -> Markup {
        let plots = || {
            self.runs().filter_map(|(job, run)| {
                let plot = run.published.as_ref()?.plot.as_ref()?;
                Some((self.caption(job, run), plot))
            })
        };
        html! {
            @if plots().next().is_some() { h2 { "Plots" } }
            @for (caption, plot) in plots() {
                figure {
                    // A picture runs no scripts and fetches nothing, whatever the file has become.
                    img src={ "data:image/svg+xml;base64," (STANDARD.encode(plot)) } alt=(caption);
                    figcaption { (caption) }
                }
            }
        }
    }

    fn caption(&self, job: &JobReport, run: &RunReport) -> String {
        let device = self.device_of(run);
        let text = format!("{} on {device}, of {} ({})", run.model, job.name, job.id);
        Printable(&text).to_string()
    }
}

fn table(section: &Section) -> Markup {
    let number = |column: usize| section.right.contains(&column);
    html! {
        h2.grave[section.grave] { (section.title) }
        div.table {
            table {
                thead {
                    tr {
                        @for (column, head) in section.heads.iter().enumerate() {
                            th.number[number(column)] scope="col" { (head) }
                        }
                    }
                }
                tbody {
                    @for row in &section.rows {
                        tr {
                            @for (column, cell) in row.iter().enumerate() {
                                // Text that turns around would make one name look like another.
                                td.number[number(column)] { (Printable(cell)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
