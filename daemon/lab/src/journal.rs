//! What the journals of a run are called, in the store and on devices.

use layerlab_analysis::LabRun;
use layerlab_protocol::RunId;

use super::record::{Run, RunNumber};
use layerlab_campaign::CampaignPart;

/// The name of the journal of a part of an attempt, the same for every daemon that goes on with it.
pub fn name(lab: &str, run: RunNumber, attempt: u32, part: CampaignPart) -> RunId {
    let part = match part {
        CampaignPart::Energy => "energy",
        CampaignPart::Times => "times",
        CampaignPart::Steady => "steady",
        CampaignPart::Accuracy => "accuracy",
        CampaignPart::Video => "video",
        CampaignPart::Tensors => "tensors",
    };
    RunId::new(format!("lab-{lab}-{run}-{attempt}-{part}")).expect("letters, digits and dashes")
}

/// The names of all journals that a run may have.
pub fn names(lab: &str, run: &Run) -> Vec<RunId> {
    let attempts = 1..=run.attempt;
    attempts
        .flat_map(|attempt| CampaignPart::ALL.map(|part| name(lab, run.number, attempt, part)))
        .collect()
}

/// The run whose journal is called so, if it is a lab's.
pub fn run_of(journal: &RunId) -> Option<RunNumber> {
    LabRun::of(journal.as_str()).map(|of_lab| of_lab.run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_for_analysis_know_a_run_by_its_journals() {
        for part in CampaignPart::ALL {
            let name = name("0123456789abcdef", 17, 2, part);
            let of_lab = LabRun::of(name.as_str()).expect("a lab's");
            assert_eq!((of_lab.lab.as_str(), of_lab.run), ("0123456789abcdef", 17));
        }
    }
}
