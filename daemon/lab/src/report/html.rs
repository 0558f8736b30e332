//! A report as one HTML file that needs no other.

use std::path::{Component, Path};

use jiff::tz::TimeZone;
use maud::{Markup, html};

use super::matrix::{Field, Matrix, Time};
use super::{Cell, JobReport, Report, RunReport, Section};
use crate::page::{page, picture};
use layerlab_farm::adb::Printable;

/// A smaller change of a time is not coloured: repeated measurements differ by as much.
const CHANGED_PERCENT: f64 = 2.0;

impl Report {
    /// The report as an HTML document, with times in `zone` and the plots that were read.
    pub fn html(&self, zone: &TimeZone) -> String {
        page(&self.headline, &self.body(zone, &link))
    }

    /// What such a document says; `link` leads to a profile by its folder.
    pub fn body(&self, zone: &TimeZone, link: &dyn Fn(&Path) -> Option<String>) -> Markup {
        let sections = self.sections(zone);
        html! {
            h1 { (self.headline) }
            p.period { (self.period(zone)) }
            @if sections.is_empty() {
                p { "Nothing happened." }
            }
            @let (grave, others): (Vec<&Section>, Vec<&Section>) = sections.iter().partition(|section| section.grave);
            @for section in grave { (table(section, link)) }
            (self.matrix())
            @for section in others { (table(section, link)) }
            (self.plots())
        }
    }

    fn matrix(&self) -> Markup {
        let Some(matrix) = Matrix::of(self) else {
            return Markup::default();
        };
        html! {
            h2 { "Models by devices" }
            div.table {
                table.matrix {
                    thead {
                        tr {
                            th scope="col" { "model" }
                            @for device in &matrix.devices { th scope="col" { (Printable(device)) } }
                        }
                    }
                    tbody {
                        @for (model, fields) in &matrix.models {
                            tr {
                                th scope="row" { (Printable(model)) }
                                @for (device, field) in matrix.devices.iter().zip(fields) {
                                    td data-head=(Printable(device)) { @if let Some(field) = field { (in_matrix(field)) } }
                                }
                            }
                        }
                    }
                }
            }
            p.note {
                "The time of the whole model on each processor, and how it changed against the last profile from before this report. "
                "Whether a change is more than noise, `layerlab compare` says."
            }
        }
    }

    fn plots(&self) -> Markup {
        let plots = || {
            self.runs().filter_map(|(job, run)| {
                let plot = run.published.as_ref()?.plot.as_ref()?;
                Some((run, self.caption(job, run), plot))
            })
        };
        html! {
            @if plots().next().is_some() {
                h2 { "Plots" }
                ul.index {
                    @for (run, caption, _) in plots() { li { a href={ "#plot-" (run.number) } { (caption) } } }
                }
                div.plots {
                    @for (run, caption, plot) in plots() {
                        figure id={ "plot-" (run.number) } {
                            a href={ "#plot-" (run.number) } title="as wide as the page" {
                                (picture(plot, &caption))
                            }
                            figcaption { (caption) }
                        }
                    }
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

fn in_matrix(field: &Field<'_>) -> Markup {
    let badge = badge(&field.run.outcome.to_string());
    let Some(published) = &field.run.published else {
        return badge;
    };
    html! {
        @if field.times.is_empty() { (badge) }
        @for Time { processor, time, change_percent } in &field.times {
            div {
                (Printable(processor)) " " (time)
                @if let Some(change) = change_percent {
                    " " span.changed.slower[*change >= CHANGED_PERCENT].faster[*change <= -CHANGED_PERCENT] { (format!("{change:+.1} %")) }
                }
            }
        }
        @if published.before.is_none() && !field.times.is_empty() { div.note { "first of its kind" } }
        @if published.plot.is_some() { a href={ "#plot-" (field.run.number) } { "plot" } }
    }
}

fn table(section: &Section, link: &dyn Fn(&Path) -> Option<String>) -> Markup {
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
                            @for (column, (cell, head)) in row.iter().zip(section.heads).enumerate() {
                                td.number[number(column)] data-head=(head) { (in_cell(cell, link)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn in_cell(cell: &Cell, link: &dyn Fn(&Path) -> Option<String>) -> Markup {
    // Text that turns around would make one name look like another.
    let text = Printable(&cell.to_string()).to_string();
    match cell {
        Cell::Run(_) | Cell::Job(_) => badge(&text),
        Cell::Profile {
            folder,
            gone: false,
            ..
        } => match link(folder) {
            Some(link) => html! { a href=(link) { (text) } },
            None => html! { (text) },
        },
        Cell::Text(_) | Cell::Profile { .. } => html! { (text) },
    }
}

fn badge(state: &str) -> Markup {
    html! { span class={ "badge " (state) } { (state) } }
}

/// A folder as a link from a page on the same host; nothing for one that is named from somewhere else.
pub(super) fn link(folder: &Path) -> Option<String> {
    let mut link = String::new();
    for component in folder.is_absolute().then(|| folder.components())? {
        let Component::Normal(name) = component else {
            continue;
        };
        link.push('/');
        for byte in name.as_encoded_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    link.push(char::from(*byte));
                }
                byte => link.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    Some(link)
}
