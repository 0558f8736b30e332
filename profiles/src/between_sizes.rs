//! What a model with an open dimension, such as the length of a sequence, would take at a size that nobody measured, from its
//! profiles at a smaller and a larger one.
//!
//! Between two sizes each layer's computing is taken to be linear in its operations, and moving its data in the bytes that
//! cross the cut: `y = (1 - w) y_small + w y_large` with `w = (x - x_small) / (x_large - x_small)`. Where a layer has the same
//! operations at both sizes, `x` is the bytes that it gives, and of what has the same `x` then, `w` is that of all operations
//! together. Intervals are those of the two profiles, `√((1 - w)² h_small² + w² h_large²)`, and hold nothing of how far times are
//! from being linear. That is seen where three sizes or more were profiled: each but the smallest
//! and the largest is left out in turn, calculated from its neighbours, and compared with what was measured.

use crate::Layer;
use crate::derive::LayerTime;
use crate::document::{LayerTimeRow, Profile};
use crate::summary::Estimate;
use crate::units::SignedNanos;

/// Profiles of one model on one device, of different sizes.
#[derive(Debug)]
pub struct Sizes<'a> {
    /// The profile with the fewest operations first.
    profiles: Vec<&'a Profile>,
}

/// Profiles between which nothing can be calculated, or a size that does not lie between them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizesError {
    /// There is nothing between one size.
    #[error("one size has nothing beside it: give profiles of two sizes or more")]
    OneSize,
    /// The profiles do not belong together.
    #[error(
        "the profiles differ in more than a size: in their {what}, {one} and {other}; give profiles of one model, one device \
         and the same processors"
    )]
    Different {
        /// What differs.
        what: &'static str,
        /// As the one profile has it.
        one: String,
        /// As the other has it.
        other: String,
    },
    /// Two profiles have the same size.
    #[error("two of the profiles are of the same size; give one for each")]
    SameSize,
    /// The times of one layer mean something else in one of the profiles, or are not there.
    #[error(
        "the times of layer {layer} on `{processor}` are not there in one of the profiles, or contain other moving than in another; \
         profile all sizes with the same design and processors"
    )]
    OtherTimes {
        /// The layer.
        layer: u32,
        /// The processor.
        processor: String,
    },
    /// The model at the wanted size has other layers.
    #[error(
        "the model has {layers} layers at this size and {profiled} in the profiles, so that nothing can be calculated: profile \
         this size"
    )]
    OtherLayers {
        /// How many layers it has.
        layers: usize,
        /// How many layers the profiles have.
        profiled: usize,
    },
    /// Nothing is known beyond what was profiled.
    #[error(
        "the size lies outside of what was profiled; profile a {} one",
        if *is_larger { "larger" } else { "smaller" }
    )]
    Outside {
        /// Whether it is larger than all that were profiled.
        is_larger: bool,
    },
    /// Of several open dimensions, one is beyond what was profiled.
    #[error(
        "layer {layer} would compute or move more, or less, at this size than at both sizes around it; profile sizes that differ in \
         one dimension"
    )]
    LayerOutside {
        /// The layer.
        layer: u32,
    },
}

/// What one profile says when its size is calculated from its neighbours.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut<'a> {
    /// The profile that was left out.
    pub profile: &'a Profile,
    /// Of each of its processors that can run the whole model.
    pub processors: Vec<Missed>,
}

/// How far the calculated times of one processor are from measured ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Missed {
    /// The processor's name.
    pub processor: String,
    /// All layers on it: how much longer the calculated time is, as a share of the measured one.
    pub whole: f64,
    /// The layer whose compute time is missed by most.
    pub layer: u32,
    /// By how much, as a share of the measured time of all layers.
    pub of_layer: f64,
}

impl<'a> Sizes<'a> {
    /// The sizes of these profiles.
    ///
    /// # Errors
    /// When they are of fewer than two sizes, or differ in their model, device or processors.
    pub fn of(profiles: &'a [Profile]) -> Result<Sizes<'a>, SizesError> {
        let Some((first, others)) = profiles
            .split_first()
            .filter(|(_, others)| !others.is_empty())
        else {
            return Err(SizesError::OneSize);
        };
        for other in others {
            for ((what, one), (_, other)) in told_apart(first).into_iter().zip(told_apart(other)) {
                if one != other {
                    return Err(SizesError::Different { what, one, other });
                }
            }
            let mut layers = first.layers.iter().zip(&other.layers);
            if let Some((one, other)) = layers.find(|(one, other)| one.name != other.name) {
                return Err(SizesError::Different {
                    what: "layers",
                    one: one.name.clone(),
                    other: other.name.clone(),
                });
            }
            same_times(first, other)?;
        }
        let mut profiles: Vec<&Profile> = profiles.iter().collect();
        profiles.sort_by_key(|profile| size(&profile.layers));
        let mut neighbours = profiles.windows(2);
        if neighbours.any(|two| size(&two[0].layers) == size(&two[1].layers)) {
            return Err(SizesError::SameSize);
        }
        Ok(Sizes { profiles })
    }

    /// The model with these `layers`: the profile of the next smaller size, with their numbers and times in place of its own. It
    /// has no samples, segments or anything else that was measured.
    ///
    /// # Errors
    /// When they are other layers, or more or less than any profile's.
    pub fn at(&self, layers: &[Layer]) -> Result<Profile, SizesError> {
        let [smallest, .., largest] = self.profiles[..] else {
            return Err(SizesError::OneSize);
        };
        if layers.len() != smallest.layers.len() {
            return Err(SizesError::OtherLayers {
                layers: layers.len(),
                profiled: smallest.layers.len(),
            });
        }
        let wanted = size(layers);
        let is_larger = wanted > size(&largest.layers);
        if is_larger || wanted < size(&smallest.layers) {
            return Err(SizesError::Outside { is_larger });
        }
        let above = self
            .profiles
            .partition_point(|it| size(&it.layers) < wanted);
        let above = above.max(1);
        between(self.profiles[above - 1], self.profiles[above], layers)
    }

    /// Each size that lies between its neighbours in all layers, calculated from them.
    pub fn left_out(&self) -> Vec<LeftOut<'a>> {
        let three = self.profiles.windows(3);
        three
            .filter_map(|three| {
                let calculated = between(three[0], three[2], &three[1].layers).ok()?;
                Some(LeftOut {
                    profile: three[1],
                    processors: missed(three[1], &calculated),
                })
            })
            .collect()
    }
}

/// What profiles of one model at different sizes have in common.
fn told_apart(profile: &Profile) -> Vec<(&'static str, String)> {
    let header = &profile.header;
    let processors = header.processors.iter().map(|it| {
        let threads = it
            .threads
            .map_or(String::new(), |count| format!(", {count} threads"));
        let software = format!("{} {}", it.runtime, it.runtime_version);
        format!("{} ({:?} by {software}{threads})", it.name, it.numerics)
    });
    let processors: Vec<String> = processors.collect();
    let twin = header.model.quantised.as_ref();
    vec![
        ("model", header.model.sha256.chars().take(12).collect()),
        (
            "quantised twin",
            twin.map_or("none".to_owned(), |it| it.sha256.chars().take(12).collect()),
        ),
        ("number of layers", profile.layers.len().to_string()),
        ("device", header.device.name.clone()),
        (
            "state",
            header.mark().unwrap_or("measured, cold").to_owned(),
        ),
        ("processors", processors.join(", ")),
    ]
}

/// Refuses times that are there at one size alone, or contain other moving.
fn same_times(one: &Profile, other: &Profile) -> Result<(), SizesError> {
    let meaning = |row: &LayerTimeRow| {
        let time = &row.time;
        let moving = (time.to_processor.is_some(), time.from_processor.is_some());
        (
            row.layer,
            row.processor.clone(),
            time.compute_includes,
            moving,
        )
    };
    // Both are in the order of processors and layers, so that the first that differ are those of the first such layer.
    let longer = if one.times.len() < other.times.len() {
        other
    } else {
        one
    };
    let pairs = one
        .times
        .iter()
        .map(meaning)
        .zip(other.times.iter().map(meaning));
    let same = pairs.take_while(|(one, other)| one == other).count();
    match longer.times.get(same) {
        Some(row) => Err(SizesError::OtherTimes {
            layer: row.layer,
            processor: row.processor.clone(),
        }),
        None => Ok(()),
    }
}

/// Operations of one inference, and of models that do not compute the bytes that cross its cuts.
fn size(layers: &[Layer]) -> (u64, u64) {
    let bytes = layers.iter().map(|layer| layer.output_bytes.as_bytes());
    (
        layers.iter().map(operations).fold(0, u64::saturating_add),
        bytes.fold(0, u64::saturating_add),
    )
}

fn operations(layer: &Layer) -> u64 {
    layer.additions.saturating_add(layer.multiplications)
}

fn between(small: &Profile, large: &Profile, layers: &[Layer]) -> Result<Profile, SizesError> {
    for ((wanted, small), large) in layers.iter().zip(&small.layers).zip(&large.layers) {
        let counts = |layer: &Layer| {
            let moved = [layer.input_bytes, layer.output_bytes].map(|bytes| bytes.as_bytes());
            [operations(layer), moved[0], moved[1]]
        };
        let three = [small, wanted, large].map(counts);
        let is_outside = |count: usize| {
            let [small, wanted, large] = three.map(|counts| counts[count]);
            !(small.min(large)..=small.max(large)).contains(&wanted)
        };
        if (0..3).any(is_outside) {
            return Err(SizesError::LayerOutside {
                layer: wanted.number,
            });
        }
    }
    let (small_size, wanted, large_size) = (size(&small.layers), size(layers), size(&large.layers));
    let of_all = weight([small_size.0, wanted.0, large_size.0]);
    let of_all = of_all.or_else(|| weight([small_size.1, wanted.1, large_size.1]));
    let of_all = of_all.unwrap_or(0.5);
    let times = small
        .times
        .iter()
        .zip(&large.times)
        .filter_map(|(row, other)| {
            let place = (row.layer as usize).checked_sub(1)?;
            let three = [small, large].map(|profile| profile.layers.get(place));
            Some(LayerTimeRow {
                time: time_between(
                    &row.time,
                    &other.time,
                    [three[0]?, layers.get(place)?, three[1]?],
                    of_all,
                ),
                ..row.clone()
            })
        });
    let mut unsupported = small.unsupported.clone();
    let others = large.unsupported.iter();
    unsupported.extend(
        others
            .filter(|row| !small.unsupported.contains(row))
            .cloned(),
    );
    Ok(Profile {
        header: small.header.clone(),
        layers: layers.to_vec(),
        times: times.collect(),
        cuts: Vec::new(),
        segments: Vec::new(),
        samples: Vec::new(),
        rejected: Vec::new(),
        blocks: Vec::new(),
        combinations: Vec::new(),
        unsupported,
        loads: Vec::new(),
        placements: Vec::new(),
        evaluations: Vec::new(),
        additivity: Vec::new(),
        probes: Vec::new(),
        moving: Vec::new(),
        soaking: Default::default(),
        energy: None,
        steady: None,
    })
}

/// `layers` are the same layer at the smaller, the wanted and the larger size, `of_all` the weight of all layers together.
fn time_between(
    small: &LayerTime,
    large: &LayerTime,
    layers: [&Layer; 3],
    of_all: f64,
) -> LayerTime {
    let incoming = weight(layers.map(|layer| layer.input_bytes.as_bytes()));
    let outgoing = weight(layers.map(|layer| layer.output_bytes.as_bytes()));
    let computing = weight(layers.map(operations)).or(outgoing);
    let both = |one: Option<Estimate>, other: Option<Estimate>, weight: Option<f64>| {
        Some(estimate_between(&one?, &other?, weight.unwrap_or(of_all)))
    };
    LayerTime {
        compute: estimate_between(&small.compute, &large.compute, computing.unwrap_or(of_all)),
        compute_includes: small.compute_includes,
        to_processor: both(small.to_processor, large.to_processor, incoming),
        from_processor: both(small.from_processor, large.from_processor, outgoing),
    }
}

/// How far the second lies on the way from the first to the third; nothing if there is no way.
fn weight([small, wanted, large]: [u64; 3]) -> Option<f64> {
    let (small, wanted, large) = (small as f64, wanted as f64, large as f64);
    (large != small).then(|| (wanted - small) / (large - small))
}

fn estimate_between(small: &Estimate, large: &Estimate, weight: f64) -> Estimate {
    let value = |estimate: &Estimate| estimate.value.as_nanos() as f64;
    let half_width = |estimate: &Estimate| {
        let (low, high) = estimate.ci95?;
        Some((high - low).as_nanos() as f64 / 2.0)
    };
    let of_both = half_width(small).zip(half_width(large));
    Estimate::around(
        (1.0 - weight) * value(small) + weight * value(large),
        of_both.map(|(small, large)| ((1.0 - weight) * small).hypot(weight * large)),
    )
}

fn missed(measured: &Profile, calculated: &Profile) -> Vec<Missed> {
    let nanos = |time: SignedNanos| time.as_nanos() as f64;
    let processors = measured.header.processors.iter();
    let wholes = measured.whole_model_times().into_iter();
    let wholes = wholes.zip(calculated.whole_model_times());
    processors
        .zip(wholes)
        .filter_map(|(processor, wholes)| {
            let (whole, calculated_whole) = (nanos(wholes.0?), nanos(wholes.1?));
            let pairs = measured.times.iter().zip(&calculated.times);
            let of_processor = pairs.filter(|(row, _)| row.processor == processor.name);
            let apart = of_processor.map(|(row, other)| {
                let longer = other.time.compute.value - row.time.compute.value;
                (row.layer, nanos(longer) / whole)
            });
            let (layer, of_layer) = apart.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
            Some(Missed {
                processor: processor.name.clone(),
                whole: calculated_whole / whole - 1.0,
                layer,
                of_layer,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
