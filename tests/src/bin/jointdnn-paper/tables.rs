//! What several figures share: plans of all networks over all links, and numbers as text.

use layerlab_planners::edge::{PaperLink, Quantity, Side, SplitNetwork, SplitPlan};

use crate::case::Case;
use crate::planner::{Compared, Planner, link_name};

/// The plans of one network over one link: those of the least latency, and those of the least energy.
pub(crate) struct Improvement<'a> {
    pub(crate) case: &'a Case,
    pub(crate) link: PaperLink,
    pub(crate) latency: Compared,
    pub(crate) energy: Compared,
}

impl Improvement<'_> {
    /// How much less the joint plan costs, in per cent.
    pub(crate) fn less(&self, quantity: Quantity) -> f64 {
        self.of(quantity).less(quantity)
    }

    fn of(&self, quantity: Quantity) -> &Compared {
        match quantity {
            Quantity::Energy => &self.energy,
            Quantity::Latency | Quantity::ServerTime => &self.latency,
        }
    }

    fn row(&self) -> Vec<String> {
        let mut row = vec![self.case.name(), link_name(self.link).to_owned()];
        for quantity in [Quantity::Latency, Quantity::Energy] {
            let compared = self.of(quantity);
            let plans = [&compared.phone, &compared.server, &compared.joint];
            // ms, and mJ.
            row.extend(plans.map(|plan| short(plan.cost().of(quantity) as f64 / 1e6)));
            row.push(format!("{:.0}", compared.less(quantity)));
        }
        row
    }
}

pub(crate) const IMPROVEMENT_HEADS: [&str; 10] = [
    "network",
    "link",
    "phone only, ms",
    "server only, ms",
    "joint, ms",
    "less, %",
    "phone only, mJ",
    "server only, mJ",
    "joint, mJ",
    "less, %",
];

pub(crate) fn improvements<'a>(
    planner: &mut Planner,
    cases: &'a [Case],
    network: impl Fn(&Case) -> SplitNetwork,
) -> Vec<Improvement<'a>> {
    let mut all = Vec::new();
    for case in cases {
        let network = network(case);
        for link in PaperLink::ALL {
            all.push(Improvement {
                case,
                link,
                latency: planner.compare(&network, link, Quantity::Latency),
                energy: planner.compare(&network, link, Quantity::Energy),
            });
        }
    }
    all
}

pub(crate) fn improvement_rows(all: &[Improvement<'_>]) -> Vec<Vec<String>> {
    all.iter().map(Improvement::row).collect()
}

/// The largest improvement, and where it is.
pub(crate) fn most(all: &[Improvement<'_>], quantity: Quantity) -> (f64, String) {
    let place = |it: &Improvement<'_>| {
        let text = format!("{} over {}", it.case.name(), link_name(it.link));
        (it.less(quantity), text)
    };
    let places = all.iter().map(place);
    places
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .expect("networks")
}

/// Those where the joint plan costs less than both, of all.
pub(crate) fn better(all: &[Improvement<'_>], quantity: Quantity) -> String {
    let better = all.iter().filter(|it| it.less(quantity) > 0.0).count();
    format!("{better} of {}", all.len())
}

/// How many of the layers from `first` on a plan runs on the server.
pub(crate) fn on_server(plan: &SplitPlan, first: u32) -> u32 {
    let groups = plan.groups().iter().filter(|it| it.side == Side::Server);
    let from = |last: u32, start: u32| (last + 1).saturating_sub(start.max(first));
    groups
        .map(|it| from(it.segment.last(), it.segment.first()))
        .sum()
}

/// Three significant digits or so.
pub(crate) fn short(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
