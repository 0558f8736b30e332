//! Plans, each added up again by the checker.

use layerlab_planners::edge::{
    PaperLink, Power, Quantity, Side, SplitAlgorithm, SplitGoal, SplitLimits, SplitNetwork,
    SplitPlan, SplitProblem, check_split, split,
};
use layerlab_profiles::Segment;

/// Plans, and what is wrong with them.
#[derive(Default)]
pub(crate) struct Planner {
    pub(crate) plans: usize,
    pub(crate) faults: Vec<String>,
}

/// The plans of one network over one link for one quantity.
pub(crate) struct Compared {
    pub(crate) phone: SplitPlan,
    pub(crate) server: SplitPlan,
    pub(crate) joint: SplitPlan,
}

impl Compared {
    /// The lesser of everything on the phone and everything on the server.
    pub(crate) fn status_quo(&self, quantity: Quantity) -> u64 {
        let [phone, server] = [&self.phone, &self.server].map(|plan| plan.cost().of(quantity));
        phone.min(server)
    }

    /// How much less than that the joint plan costs, in per cent.
    pub(crate) fn less(&self, quantity: Quantity) -> f64 {
        let joint = self.joint.cost().of(quantity) as f64;
        100.0 * (1.0 - joint / self.status_quo(quantity) as f64)
    }
}

impl Planner {
    /// The plan that costs least within the limits; nothing where none keeps them.
    pub(crate) fn plan(
        &mut self,
        network: &SplitNetwork,
        paper: PaperLink,
        goal: SplitGoal,
        algorithm: SplitAlgorithm,
    ) -> Option<SplitPlan> {
        let link = paper.link();
        // The phone draws nothing while it waits, as in the paper.
        let idle = Power::ZERO;
        let problem = SplitProblem::new(network.clone(), &link, idle).expect("moderate costs");
        let outcome = split(&problem, goal, algorithm).expect("a sensible goal");
        let plan = outcome.plan()?.clone();
        self.plans += 1;
        let faults = check_split(&plan, network, &link, idle);
        let named = faults
            .iter()
            .map(|it| format!("{algorithm} over {paper:?}: {it}"));
        self.faults.extend(named);
        Some(plan)
    }

    pub(crate) fn least(
        &mut self,
        network: &SplitNetwork,
        paper: PaperLink,
        minimise: Quantity,
        algorithm: SplitAlgorithm,
    ) -> SplitPlan {
        let limits = SplitLimits::default();
        let goal = SplitGoal { minimise, limits };
        let plan = self.plan(network, paper, goal, algorithm);
        plan.expect("all layers run anywhere")
    }

    pub(crate) fn compare(
        &mut self,
        network: &SplitNetwork,
        paper: PaperLink,
        minimise: Quantity,
    ) -> Compared {
        let mut by = |algorithm| self.least(network, paper, minimise, algorithm);
        Compared {
            phone: by(SplitAlgorithm::PhoneOnly),
            server: by(SplitAlgorithm::ServerOnly),
            joint: by(SplitAlgorithm::Joint),
        }
    }
}

pub(crate) fn link_name(paper: PaperLink) -> &'static str {
    match paper {
        PaperLink::ThreeG => "3G",
        PaperLink::FourG => "4G",
        PaperLink::WiFi => "Wi-Fi",
    }
}

/// The sides in order: `phone → server`.
pub(crate) fn pattern(plan: &SplitPlan) -> String {
    let sides = plan.pattern();
    let names: Vec<String> = sides.iter().map(Side::to_string).collect();
    names.join(" → ")
}

/// Which layers run where: `phone 1-3, server 4-11`.
pub(crate) fn layers(plan: &SplitPlan) -> String {
    let mut stretches: Vec<(Side, Segment)> = Vec::new();
    for group in plan.groups() {
        match stretches.last_mut() {
            Some((side, segment)) if *side == group.side => {
                let both = Segment::new(segment.first(), group.segment.last());
                *segment = both.expect("ascending");
            }
            _ => stretches.push((group.side, group.segment)),
        }
    }
    let text = |(side, it): &(Side, Segment)| match it.layers() {
        1 => format!("{side} {}", it.first()),
        _ => format!("{side} {}-{}", it.first(), it.last()),
    };
    stretches.iter().map(text).collect::<Vec<_>>().join(", ")
}
