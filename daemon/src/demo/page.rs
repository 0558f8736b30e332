//! What the demo found, as one HTML page that needs no other file.

use layerlab_campaign::plot;
use layerlab_lab::page::{page, picture};
use layerlab_lab::text_table;
use layerlab_profiles::Placement;
use layerlab_profiles::document::{CombinationRow, Profile};
use maud::{Markup, html};

use super::planned::Planned;
use super::{InFolder, PhoneRow, phone_rows};
use crate::exit::{Code, ExitWith, Failure};
use crate::plan::describe::describe;
use crate::plan::{BESIDE, Predicted, beside};
use crate::show;

/// The page of all profiles, and of the plan that was made from one of them.
pub(super) fn write(
    times: &[InFolder],
    accuracy: &InFolder,
    planned: &Planned,
) -> Result<String, Failure> {
    let profile = &accuracy.1;
    let (model, device) = (&profile.header.model.name, show::device(&profile.header));
    let title = format!("{model} on {device}: what can be planned");
    let trade_off = planned.picture(&title)?;
    let layers = svg(profile)?;
    let others = times.iter().map(|(_, profile)| {
        let caption = format!(
            "{} on {}",
            profile.header.model.name,
            show::device(&profile.header)
        );
        Ok((svg(profile)?, caption))
    });
    let others = others.collect::<Result<Vec<_>, Failure>>()?;
    let measured = planned.measured();
    let body = html! {
        h1 { "Which layers of a neural network should run on which processor?" }
        p.period { "The demo of layerlab, on simulated phones: no number here is of a real one." }

        h2 { "Fast, or accurate, or some of both" }
        p {
            "All layers of " (model) " on the NPU are fast and lose accuracy, for it computes in fewer bits. All on the CPU lose nothing and are slow. "
            "With the times of each layer and what placements lose, both measured on the phone, one can choose anything between:"
        }
        figure { (picture(trade_off.as_bytes(), &title)) figcaption { (title) } }

        h2 { "A plan: the most accurate within " (planned.within) }
        pre { (describe(&planned.plan, &planned.learnt)) }
        @if let Some(measured) = measured {
            p { "The plan was run on the phone. What was measured, beside what was predicted:" }
            (table(&BESIDE, beside(&Predicted::from(&planned.plan), measured)))
        }

        h2 { "What each layer costs" }
        figure { (picture(layers.as_bytes(), &title)) figcaption { (model) " on " (device) } }

        h2 { "What placements lose" }
        p {
            (profile.combinations.len()) " placements answered up to " (planned.learnt.evaluation.answers)
            " labelled images; one whose loss was known well enough was given no more. Those with the largest losses, of single layers on the NPU and of all:"
        }
        (table(&LOSSES, losses(profile)))

        h2 { "The same for other networks and phones" }
        (table(&PhoneRow::HEADS, phone_rows(times).map(PhoneRow::cells)))
        div.plots {
            @for (svg, caption) in &others {
                figure { (picture(svg.as_bytes(), caption)) figcaption { (caption) } }
            }
        }
    };
    Ok(page("the demo", &body))
}

fn svg(profile: &Profile) -> Result<String, Failure> {
    let svg = plot::svg(profile).map_err(anyhow::Error::msg);
    svg.exit_with(Code::Internal)
}

const LOSSES: [&str; 4] = [
    "on the NPU",
    "accuracy lost, % points",
    "95 % interval",
    "answers",
];

/// What the demo prints of losses.
pub(super) fn losses_table(profile: &Profile) -> String {
    text_table::table(&LOSSES, &[1, 2, 3], losses(profile))
}

/// The worst single layers, and all layers together.
fn losses(profile: &Profile) -> Vec<Vec<String>> {
    let layers = profile.layers.len();
    let row = |name: String, row: &CombinationRow| {
        let (low, high) = row.loss_ci95;
        vec![
            name,
            format!("{:.1}", 100.0 * row.loss),
            format!("{:.1} to {:.1}", 100.0 * low, 100.0 * high),
            row.answers.to_string(),
        ]
    };
    let of = |wanted: &Placement| {
        let mut rows = profile.combinations.iter();
        rows.find(|row| &row.combination == wanted)
    };
    let singles = (0..layers).filter_map(|layer| {
        let found = of(&Placement::alone_on(1, layer, layers))?;
        Some((profile.layers[layer].name.clone(), found))
    });
    let mut singles: Vec<(String, &CombinationRow)> = singles.collect();
    singles.sort_by(|(_, one), (_, other)| other.loss.total_cmp(&one.loss));
    let all = of(&Placement::all_on(1, layers)).map(|found| row("all layers".to_owned(), found));
    let worst = singles.into_iter().take(5);
    all.into_iter()
        .chain(worst.map(|(name, found)| row(name, found)))
        .collect()
}

fn table(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Markup {
    html! {
        div.table {
            table {
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody {
                    @for row in rows {
                        tr { @for (cell, head) in row.iter().zip(heads) { td data-head=(head) { (cell) } } }
                    }
                }
            }
        }
    }
}
