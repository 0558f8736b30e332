//! Designs: which segments of a model are measured, so that layer times can be derived from them. A design is a file,
//! which says all there is to know of it, and a line in the table below.

pub mod agenda;
pub mod over_budget;
pub mod planned_block;
mod rules;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::method::Method;
use crate::segment::Segment;
use crate::supported::{StretchLayers, SupportedLayers};
use agenda::{Agenda, DesignTask};
use rules::DesignRules;

/// Declares the designs: of each the name of its variant, its file, and what it is.
macro_rules! designs {
    ($($design:ident = $visibility:vis $file:ident, $what:literal;)+) => {
        // Formatted by name in `.ci/run`: rustfmt does not find the files of modules that a macro declares.
        $($visibility mod $file;)+

        /// A choice of segments to measure.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum Design {
            $(#[doc = $what] $design,)+
        }

        impl Design {
            /// All designs, in the order in which they are offered.
            pub const ALL: [Design; [$(Design::$design),+].len()] = [$(Design::$design),+];

            fn rules(self) -> &'static dyn DesignRules {
                match self {
                    $(Design::$design => &$file::$design,)+
                }
            }
        }
    };
}

designs! {
    PrefixSuffix = prefix_suffix, "Every prefix and every suffix of the model (mlmp §4.2.2): 2n - 1 segments.";
    Local = local, "Every layer alone, every pair of neighbours, and the whole model (docs/method.md §4): 2n segments.";
    Adaptive = pub adaptive, "What `local` measures and whatever else a planner finds worth its time while it measures.";
    Grouped = grouped, "Every segment (JointDNN's grouped table): n(n + 1) / 2 of them.";
    LayerPass = layer_pass, "Every layer by itself, in order, each fed by the layer before it: how a processor that computes\nin main memory is read layer by layer.";
}

impl Design {
    /// The segments this design measures on a model of `layers` layers, ascending, each once. One that
    /// [chooses as it goes](Design::chooses_as_it_goes) measures others too.
    pub fn segments(self, layers: u32) -> Vec<Segment> {
        self.iter(layers).collect()
    }

    /// The same segments one by one: a grouped table of a large model is large itself.
    pub fn iter(self, layers: u32) -> Box<dyn Iterator<Item = Segment>> {
        self.rules().segments(layers)
    }

    /// Those that it measures on a stretch of layers: where memory does not hold all of it as one, those that it holds, and
    /// the longest of them in place of the whole.
    pub fn iter_in(self, stretch: &StretchLayers) -> Box<dyn Iterator<Item = Segment> + '_> {
        self.rules().segments_in(stretch)
    }

    /// The segments this design measures on a processor: on each stretch of layers that it can run, those of a model of
    /// its own, as far as its memory holds them. Ascending within each stretch.
    pub fn iter_on(self, supported: &SupportedLayers) -> impl Iterator<Item = Segment> {
        supported.stretches().iter().flat_map(move |&stretch| {
            let within = supported.stretch(stretch);
            let segments = self.iter_in(&within);
            let moved = segments.map(move |segment| segment.moved_into(stretch));
            moved.collect::<Vec<_>>()
        })
    }

    /// Whether this design may measure `segment` on a model of `layers` layers.
    pub fn contains(self, layers: u32, segment: Segment) -> bool {
        self.contains_in(&StretchLayers::held(layers), segment)
    }

    fn contains_in(self, stretch: &StretchLayers, segment: Segment) -> bool {
        segment.last() <= stretch.layers() && self.rules().may_measure(stretch, segment)
    }

    /// Whether this design may measure `segment` on a processor: as a segment of the model, or of a stretch of layers
    /// that the processor can run.
    pub fn contains_on(self, supported: &SupportedLayers, segment: Segment) -> bool {
        let of_stretch = || {
            let stretch = supported.stretch_of(segment)?;
            let segment = segment.numbered_from(stretch)?;
            Some(self.contains_in(&supported.stretch(stretch), segment))
        };
        self.contains(supported.layers(), segment) || of_stretch() == Some(true)
    }

    /// The name users write.
    pub fn name(self) -> &'static str {
        self.rules().name()
    }

    /// How layer times can be derived from its segments.
    pub fn methods(self) -> &'static [Method] {
        self.rules().methods()
    }

    /// How layer times are derived unless a user asks for another method.
    pub fn method(self) -> Method {
        self.methods()[0]
    }

    /// Whether it shows what moving data costs. One that does not is for processors that compute in main memory.
    pub fn shows_transfers(self) -> bool {
        self.rules().shows_transfers()
    }

    /// Whether layer times follow only where the processor's memory holds all layers, or all of a stretch of them, as one
    /// segment.
    pub fn needs_whole(self) -> bool {
        self.rules().needs_whole()
    }

    /// Whether it chooses further segments and samples while it measures.
    pub fn chooses_as_it_goes(self) -> bool {
        self.rules().chooses_as_it_goes()
    }

    /// How many samples each segment has, at least, where the user asks for `asked`.
    pub fn samples_per_segment(self, asked: u64) -> u64 {
        self.rules().samples_per_segment(asked)
    }

    /// In how many visits each segment is timed, at least, where the user asks for `asked`.
    pub fn visits(self, asked: u64) -> u64 {
        self.rules().visits(asked)
    }

    /// The segments that never take part in a least squares fit, so that they can test it.
    pub fn held_back(self, stretch: &StretchLayers, seed: u64) -> BTreeSet<Segment> {
        self.rules().held_back(stretch, seed)
    }

    /// The segments with which additivity is tested, each against a fit without any of them.
    pub fn tested(self, stretch: &StretchLayers, seed: u64) -> BTreeSet<Segment> {
        self.rules().tested(stretch, seed)
    }

    /// What is measured when; `random` is the run's own.
    pub fn agenda(self, task: &DesignTask, random: &mut ChaCha8Rng) -> Agenda {
        self.rules().agenda(task, random)
    }

    /// The designs for accelerators whose memory does not hold the whole model, by name.
    pub fn without_whole() -> String {
        let all = Design::ALL.into_iter();
        let fit = all.filter(|design| design.shows_transfers() && !design.needs_whole());
        choice(fit.map(Design::name))
    }

    /// The designs for accelerators, by name.
    pub fn for_accelerators() -> String {
        let all = Design::ALL.into_iter();
        choice(
            all.filter(|design| design.shows_transfers())
                .map(Design::name),
        )
    }
}

/// `one, two or three`.
pub(crate) fn choice(names: impl Iterator<Item = &'static str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no design has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{unknown}` is no design: choose {}", choice(Design::ALL.into_iter().map(Design::name)))]
pub struct UnknownDesign {
    unknown: String,
}

impl FromStr for Design {
    type Err = UnknownDesign;
    fn from_str(name: &str) -> Result<Self, UnknownDesign> {
        Design::ALL
            .into_iter()
            .find(|design| design.name() == name)
            .ok_or_else(|| UnknownDesign {
                unknown: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn designs_have_the_sizes_that_the_papers_state() {
        for n in 1..=40 {
            assert_eq!(Design::PrefixSuffix.segments(n).len() as u32, 2 * n - 1);
            assert_eq!(Design::Grouped.segments(n).len() as u32, n * (n + 1) / 2);
            assert_eq!(Design::LayerPass.segments(n).len() as u32, n);
            // With one or two layers the whole model is a single or a pair.
            let whole = u32::from(n > 2);
            assert_eq!(Design::Local.segments(n).len() as u32, 2 * n - 1 + whole);
        }
    }

    #[test]
    fn segments_come_ascending_and_once() {
        for design in Design::ALL {
            let segments = design.segments(9);
            assert!(
                segments.windows(2).all(|pair| pair[0] < pair[1]),
                "{design}"
            );
        }
    }

    #[test]
    fn a_design_contains_the_segments_that_it_lists() {
        for layers in 1..=7 {
            for design in Design::ALL {
                let listed = design.segments(layers);
                for segment in Design::Grouped.segments(layers + 1) {
                    // What chooses as it goes takes: anything that is a segment of the model.
                    let chosen = design.chooses_as_it_goes() && segment.last() <= layers;
                    assert_eq!(
                        design.contains(layers, segment),
                        chosen || listed.contains(&segment),
                        "{design}: {segment} of {layers}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_processor_that_lacks_layers_is_measured_stretch_by_stretch() {
        let segment = |first, last| Segment::new(first, last).expect("ascending");
        let supported = SupportedLayers::without(6, [Segment::single(3)]);
        let found: Vec<Segment> = Design::PrefixSuffix.iter_on(&supported).collect();
        let expected = [
            (1, 1),
            (1, 2),
            (2, 2),
            (4, 4),
            (4, 5),
            (4, 6),
            (5, 6),
            (6, 6),
        ];
        assert_eq!(found, expected.map(|(first, last)| segment(first, last)));
        for design in Design::ALL {
            let all = SupportedLayers::all(6);
            assert!(design.iter_on(&all).eq(design.iter(6)), "{design}");
            let mut asked = design.iter_on(&supported);
            assert!(
                asked.all(|one| design.contains_on(&supported, one)),
                "{design}"
            );
        }
        // Neither a segment of the model's design nor of the stretch's.
        assert!(!Design::PrefixSuffix.contains_on(&supported, Segment::single(5)));
    }

    #[test]
    fn what_memory_does_not_hold_is_not_asked_for_and_the_longest_that_it_holds_is() {
        let segment = |first, last| Segment::new(first, last).expect("ascending");
        let supported = SupportedLayers::in_memory(6, [], [segment(1, 4), segment(3, 6)]);
        let local: Vec<Segment> = Design::Local.iter_on(&supported).collect();
        let mut expected = Design::Local.segments(6);
        expected.retain(|one| one.layers() <= 2);
        expected.push(segment(2, 5));
        expected.sort();
        assert_eq!(local, expected);
        assert!(Design::Adaptive.iter_on(&supported).eq(local));
        let grouped: Vec<Segment> = Design::Grouped.iter_on(&supported).collect();
        let mut expected = Design::Grouped.segments(6);
        expected.retain(|one| supported.holds(*one));
        assert_eq!(grouped, expected);
        assert!(Design::Local.contains_on(&supported, segment(2, 5)));
        assert!(!Design::Local.contains_on(&supported, segment(2, 4)));
        let needing: Vec<Design> = Design::ALL
            .into_iter()
            .filter(|design| design.needs_whole())
            .collect();
        assert_eq!(needing, [Design::PrefixSuffix]);
    }

    #[test]
    fn a_design_reads_as_it_is_written() {
        for design in Design::ALL {
            assert_eq!(design.to_string().parse(), Ok(design));
        }
        assert!("prefixsuffix".parse::<Design>().is_err());
    }

    #[test]
    fn documents_name_a_design_as_users_do() {
        for design in Design::ALL {
            let written = serde_json::to_value(design).expect("a name");
            assert_eq!(written, design.name());
        }
    }

    #[test]
    fn a_design_that_nobody_knows_is_refused_with_those_that_there_are() {
        let error = "2n".parse::<Design>().expect_err("no design").to_string();
        assert!(error.starts_with("`2n` is no design: choose "), "{error}");
        for design in Design::ALL {
            assert!(error.contains(design.name()), "{design}: {error}");
        }
        assert!(!Design::for_accelerators().contains("layer-pass"));
    }

    #[test]
    fn a_choice_reads_as_one_says_it() {
        assert_eq!(choice(["a", "b", "c"].into_iter()), "a, b or c");
        assert_eq!(choice(["a", "b"].into_iter()), "a or b");
        assert_eq!(choice(["a"].into_iter()), "a");
    }

    #[test]
    fn an_agenda_has_every_segment_of_its_design_once() {
        use rand::SeedableRng;

        let task = DesignTask {
            stretch: StretchLayers::held(12),
            seed: 3,
            gap: crate::Nanos::ZERO,
            target: 0.02,
            budget: crate::Nanos::from_millis(1_000),
            over_budget: over_budget::OverBudget::Extend,
        };
        for design in Design::ALL {
            let mut random = ChaCha8Rng::seed_from_u64(3);
            let Agenda::Fixed(blocks) = design.agenda(&task, &mut random) else {
                assert!(design.chooses_as_it_goes(), "{design}");
                continue;
            };
            let mut segments: Vec<Segment> = Vec::new();
            for block in blocks {
                match block {
                    agenda::FixedBlock::LayerPass => segments.extend((1..=12).map(Segment::single)),
                    agenda::FixedBlock::Segments(block) => {
                        assert!(block.len() <= agenda::segments_per_block(12));
                        segments.extend(block);
                    }
                }
            }
            segments.sort();
            assert_eq!(segments, design.segments(12), "{design}");
        }
    }
}
