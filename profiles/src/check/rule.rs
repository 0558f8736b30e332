//! The findings there are: name, severity and remedy of each. FORMAT.md lists them; a test compares.

use std::fmt;

use serde::Serialize;

use super::Severity;

/// What a check looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A table is not the one that `profile.json` was written with.
    FileChanged,
    /// A row's origin does not follow from `profile.json`.
    OriginContradiction,
    /// The header is of two minds about being simulated.
    SimulatedContradiction,
    /// The header is of two minds about being emulated.
    EmulatedContradiction,
    /// The times are not of the state of the device that the header says, or of another device than those beside them.
    ThermalContradiction,
    /// No layer or no processor.
    NothingMeasured,
    /// A field of the header is not of its form.
    MalformedField,
    /// Two processors have one name.
    DuplicateProcessor,
    /// `measurements` and `processors` do not fit each other.
    MeasurementMismatch,
    /// The header and `layers.csv` disagree on the number of layers.
    LayerCount,
    /// Layers are not numbered 1..n in order.
    LayerNumbering,
    /// A layer does not take in what the layer before it gives out.
    FrontierMismatch,
    /// A row names a processor that the header does not.
    UnknownProcessor,
    /// A row names a layer that the model does not have.
    UnknownLayer,
    /// Two rows of a table are about the same thing.
    DuplicateRow,
    /// Rows are not in the order of the format.
    RowOrder,
    /// A row that the design asks for is not there.
    MissingRow,
    /// A row that the design does not ask for is there.
    SegmentOutsideDesign,
    /// A segment has another number of samples, or of visits, than the header says.
    SampleCount,
    /// A sample's block is not there, or does not say of it what the table does in which it stands.
    BlockContradiction,
    /// An inference took no time.
    ZeroDuration,
    /// A processor has times or samples of what it is said not to run.
    UnsupportedContradiction,
    /// Nothing proves that an accelerator ran what it is said to have run.
    PlacementUnproved,
    /// A processor computed in 8 bits, and nothing says which quantised model it ran.
    TwinMissing,
    /// A segment's order statistics do not follow from its samples.
    SummaryContradiction,
    /// A segment's histogram does not hold its samples.
    HistogramContradiction,
    /// A layer's times do not follow from the segments.
    TimeContradiction,
    /// The test of additivity does not follow from the samples.
    AdditivityContradiction,
    /// What moving data costs does not follow from the probes.
    MovingContradiction,
    /// What is said of how the device became steady does not follow from what was timed.
    SoakContradiction,
    /// What is said of energy does not follow from what was read of the meter.
    EnergyContradiction,
    /// The whole model takes another time than its layers and cuts together.
    SumContradiction,
    /// A row of `combinations.csv` does not follow from the others, or lacks its evaluation.
    CombinationContradiction,
    /// A processor is said to compute in what its runtime does not compute in there.
    RuntimeContradiction,
    /// A number is outside of what can be.
    ImplausibleValue,
    /// Inferences overlap, or follow each other sooner than after their gap.
    ClockContradiction,
    /// Too few samples to know how far they scatter.
    FewSamples,
    /// Samples lie far apart.
    LargeSpread,
    /// A processor was in two states, and its times are of both.
    TwoStates,
    /// A processor was faster in some blocks than in others.
    Unsteady,
    /// A processor changed its speed within blocks.
    SpeedSteps,
    /// Other programs ran on the device.
    Disturbed,
    /// Times that cannot be told from zero.
    UnresolvedTimes,
    /// Times below zero by more than noise explains.
    NegativeTimes,
    /// Long segments take another time than their parts together.
    NotAdditive,
    /// Probes do not say how the costs of cuts divide.
    ProbesRefused,
    /// Segments that contradict the others.
    SuspectSegments,
    /// The device was not fit to be measured, and was measured all the same.
    NotFit,
}

impl Rule {
    /// All rules, in the order in which they are checked.
    pub const ALL: [Rule; 48] = [
        Rule::FileChanged,
        Rule::OriginContradiction,
        Rule::SimulatedContradiction,
        Rule::EmulatedContradiction,
        Rule::ThermalContradiction,
        Rule::NothingMeasured,
        Rule::MalformedField,
        Rule::DuplicateProcessor,
        Rule::MeasurementMismatch,
        Rule::LayerCount,
        Rule::LayerNumbering,
        Rule::FrontierMismatch,
        Rule::UnknownProcessor,
        Rule::UnknownLayer,
        Rule::DuplicateRow,
        Rule::RowOrder,
        Rule::MissingRow,
        Rule::SegmentOutsideDesign,
        Rule::SampleCount,
        Rule::BlockContradiction,
        Rule::ZeroDuration,
        Rule::UnsupportedContradiction,
        Rule::PlacementUnproved,
        Rule::TwinMissing,
        Rule::SummaryContradiction,
        Rule::HistogramContradiction,
        Rule::TimeContradiction,
        Rule::AdditivityContradiction,
        Rule::MovingContradiction,
        Rule::SoakContradiction,
        Rule::EnergyContradiction,
        Rule::SumContradiction,
        Rule::CombinationContradiction,
        Rule::RuntimeContradiction,
        Rule::ImplausibleValue,
        Rule::ClockContradiction,
        Rule::FewSamples,
        Rule::LargeSpread,
        Rule::TwoStates,
        Rule::Unsteady,
        Rule::SpeedSteps,
        Rule::Disturbed,
        Rule::UnresolvedTimes,
        Rule::NegativeTimes,
        Rule::NotAdditive,
        Rule::ProbesRefused,
        Rule::SuspectSegments,
        Rule::NotFit,
    ];

    /// The stable name, in kebab-case.
    pub fn name(self) -> &'static str {
        match self {
            Rule::FileChanged => "file-changed",
            Rule::OriginContradiction => "origin-contradiction",
            Rule::SimulatedContradiction => "simulated-contradiction",
            Rule::EmulatedContradiction => "emulated-contradiction",
            Rule::ThermalContradiction => "thermal-contradiction",
            Rule::NothingMeasured => "nothing-measured",
            Rule::MalformedField => "malformed-field",
            Rule::DuplicateProcessor => "duplicate-processor",
            Rule::MeasurementMismatch => "measurement-mismatch",
            Rule::LayerCount => "layer-count",
            Rule::LayerNumbering => "layer-numbering",
            Rule::FrontierMismatch => "frontier-mismatch",
            Rule::UnknownProcessor => "unknown-processor",
            Rule::UnknownLayer => "unknown-layer",
            Rule::DuplicateRow => "duplicate-row",
            Rule::RowOrder => "row-order",
            Rule::MissingRow => "missing-row",
            Rule::SegmentOutsideDesign => "segment-outside-design",
            Rule::SampleCount => "sample-count",
            Rule::BlockContradiction => "block-contradiction",
            Rule::ZeroDuration => "zero-duration",
            Rule::UnsupportedContradiction => "unsupported-contradiction",
            Rule::PlacementUnproved => "placement-unproved",
            Rule::TwinMissing => "twin-missing",
            Rule::SummaryContradiction => "summary-contradiction",
            Rule::HistogramContradiction => "histogram-contradiction",
            Rule::TimeContradiction => "time-contradiction",
            Rule::AdditivityContradiction => "additivity-contradiction",
            Rule::MovingContradiction => "moving-contradiction",
            Rule::SoakContradiction => "soak-contradiction",
            Rule::EnergyContradiction => "energy-contradiction",
            Rule::SumContradiction => "sum-contradiction",
            Rule::CombinationContradiction => "combination-contradiction",
            Rule::RuntimeContradiction => "runtime-contradiction",
            Rule::ImplausibleValue => "implausible-value",
            Rule::ClockContradiction => "clock-contradiction",
            Rule::FewSamples => "few-samples",
            Rule::LargeSpread => "large-spread",
            Rule::TwoStates => "two-states",
            Rule::Unsteady => "unsteady",
            Rule::SpeedSteps => "speed-steps",
            Rule::Disturbed => "disturbed",
            Rule::UnresolvedTimes => "unresolved-times",
            Rule::NegativeTimes => "negative-times",
            Rule::NotAdditive => "not-additive",
            Rule::ProbesRefused => "probes-refused",
            Rule::SuspectSegments => "suspect-segments",
            Rule::NotFit => "not-fit",
        }
    }

    /// How bad it is.
    pub fn severity(self) -> Severity {
        match self {
            Rule::FewSamples
            | Rule::LargeSpread
            | Rule::TwoStates
            | Rule::Unsteady
            | Rule::SpeedSteps
            | Rule::Disturbed
            | Rule::UnresolvedTimes
            | Rule::NegativeTimes
            | Rule::NotAdditive
            | Rule::ProbesRefused
            | Rule::SuspectSegments
            | Rule::NotFit => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// What to do about it where the device is simulated: nothing there is hot or busy unless it was planted.
    pub(super) fn remedy_of_simulated(self) -> &'static str {
        match self {
            Rule::LargeSpread | Rule::Unsteady | Rule::SpeedSteps => {
                "the device's noise is planted: measure for longer"
            }
            _ => self.remedy(),
        }
    }

    /// What to do about it, in one sentence without a full stop.
    pub fn remedy(self) -> &'static str {
        match self {
            Rule::FileChanged => "restore the file from where the profile was published",
            Rule::OriginContradiction
            | Rule::SimulatedContradiction
            | Rule::EmulatedContradiction => {
                "do not use these numbers as a real device's, and measure again"
            }
            Rule::ThermalContradiction => {
                "do not use these times as a cool device's, and measure again"
            }
            Rule::NothingMeasured => "measure a model with layers on at least one processor",
            Rule::MalformedField => "write the field as FORMAT.md says",
            Rule::DuplicateProcessor => "give each processor of the device a name of its own",
            Rule::MeasurementMismatch => {
                "say for each processor, in the order of `processors`, how it was measured"
            }
            Rule::LayerCount | Rule::LayerNumbering | Rule::FrontierMismatch => {
                "split the model into layers again and rebuild the profile from its samples"
            }
            Rule::UnknownProcessor
            | Rule::UnknownLayer
            | Rule::DuplicateRow
            | Rule::RowOrder
            | Rule::SummaryContradiction
            | Rule::HistogramContradiction
            | Rule::TimeContradiction
            | Rule::AdditivityContradiction
            | Rule::MovingContradiction
            | Rule::SoakContradiction
            | Rule::EnergyContradiction => "rebuild the profile from its samples",
            Rule::MissingRow | Rule::SegmentOutsideDesign | Rule::SampleCount => {
                "let the run finish, or measure again with the design that the header names"
            }
            Rule::BlockContradiction => "use only samples whose block counts, and measure again",
            Rule::ZeroDuration => {
                "measure again: the clock is too coarse or the inference did not run"
            }
            Rule::UnsupportedContradiction => {
                "measure again: either the processor can run these layers, or something else ran"
            }
            Rule::PlacementUnproved => {
                "do not use these numbers as the accelerator's, and measure again with fallback refused"
            }
            Rule::TwinMissing => "measure again and give the quantised model with `--quantised`",
            Rule::CombinationContradiction => "evaluate the model again",
            Rule::RuntimeContradiction | Rule::ImplausibleValue | Rule::ClockContradiction => {
                "restore the profile from where it was published, or measure again"
            }
            Rule::FewSamples => "measure with `--samples 6` or more to know how far they scatter",
            Rule::LargeSpread => {
                "let the device cool down, close what else runs on it, and measure again"
            }
            Rule::TwoStates => {
                "read times as means of both states; for those of one close what else runs on the device and measure again"
            }
            Rule::Unsteady => {
                "read times as means over what the device did; close what else runs on it, fix its clocks, and measure for longer"
            }
            Rule::SpeedSteps => {
                "do not trust intervals to hold what the device does at one speed; fix its clocks, close what else runs on it, and \
                 measure again"
            }
            Rule::Disturbed => {
                "close what else runs on the device, give a virtual machine cores of its own, and measure again"
            }
            Rule::UnresolvedTimes => {
                "measure more samples; do not read these numbers as costs, and for whole placements use T(L)"
            }
            Rule::NegativeTimes => {
                "moving data costs differently in and out or layers fuse: trust T(L) of whole placements, \
                 not single transfers, or measure with the design grouped"
            }
            Rule::SumContradiction => {
                "measure again on a quiet device; where that helps nothing, whole models cannot be predicted from layers there"
            }
            Rule::NotAdditive => {
                "do not predict long segments from layer times on this device; measure with the design grouped"
            }
            Rule::ProbesRefused => {
                "read transfers and compute times as derived under the assumption that moving costs the same both ways; \
                 for whole placements use T(L)"
            }
            Rule::NotFit => {
                "compare these times with none of a device that was fit; let it cool and charge, and measure again without `--not-fit`"
            }
            Rule::SuspectSegments => {
                "measure again; if the same segments differ again, the device treats them differently"
            }
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_written_in_json_by_its_name() {
        for rule in Rule::ALL {
            let json = serde_json::to_value(rule).expect("a unit variant");
            assert_eq!(json, rule.name());
        }
    }

    #[test]
    fn all_rules_are_listed_once() {
        assert!(Rule::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(Rule::ALL.len(), Rule::NotFit as usize + 1);
    }
}
