//! The samples of a run as they come: those of the block that is in progress, or was the last.

use std::collections::BTreeMap;

use layerlab_campaign::CampaignPart;
use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::{Entry, Event, Order};

use crate::job::ModelSpec;
use crate::journal;
use crate::record::{Job, Run};
use crate::store::{Reader, StoreError};

/// Of a longer block the samples before these are not counted.
const MOST: u32 = 2000;

/// What the store has of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatestBlock {
    /// The number of its order.
    pub order: u32,
    /// Its number in the order.
    pub block: u32,
    /// Whether a probe is measured, not the model of the run.
    pub is_probe: bool,
    /// The segments that have samples, in order.
    pub segments: Vec<SegmentSoFar>,
}

/// The samples of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSoFar {
    /// The layers that ran as one unit.
    pub segment: Segment,
    /// The processor on which they did.
    pub processor: String,
    /// How many samples there are.
    pub samples: usize,
    /// What the last one took.
    pub last: Nanos,
    /// What half of them took less than, or the sample itself.
    pub median: Nanos,
}

/// The last block of a run's attempt of which there are samples, in the part that it works on.
pub async fn latest_block(
    reader: &Reader,
    lab: &str,
    job: &Job,
    run: &Run,
) -> Result<Option<LatestBlock>, StoreError> {
    for part in CampaignPart::ALL.into_iter().rev() {
        let journal = journal::name(lab, run.number, run.attempt, part);
        let entries = reader.last_entries(&journal, MOST).await?;
        if entries.is_empty() {
            continue;
        }
        let Some((number, block)) = entries.iter().rev().find_map(block_of) else {
            return Ok(None);
        };
        let order = reader.order(&journal, number).await?;
        let model = job.spec.models.get(run.model);
        return Ok(order.map(|order| so_far(&entries, &order, block, model)));
    }
    Ok(None)
}

/// The order and the block of a sample.
fn block_of(entry: &Entry) -> Option<(u32, u32)> {
    match entry.event {
        Event::Sample { block, .. } => Some((entry.order, block)),
        _ => None,
    }
}

fn so_far(entries: &[Entry], order: &Order, block: u32, model: Option<&ModelSpec>) -> LatestBlock {
    let mut durations: BTreeMap<Segment, Vec<Nanos>> = BTreeMap::new();
    for entry in entries {
        if let Event::Sample {
            segment,
            duration_ns,
            ..
        } = entry.event
            && block_of(entry) == Some((order.number, block))
        {
            durations.entry(segment).or_default().push(duration_ns);
        }
    }
    let segments = durations
        .into_iter()
        .filter_map(|(segment, mut durations)| {
            let last = *durations.last()?;
            durations.sort_unstable();
            Some(SegmentSoFar {
                segment,
                processor: order.processor_of(segment).to_owned(),
                samples: durations.len(),
                last,
                median: durations[(durations.len() - 1) / 2],
            })
        });
    let mut own = model.into_iter().flat_map(|model| {
        let twin = model.quantised.as_ref().map(|twin| &twin.sha256);
        std::iter::once(&model.sha256).chain(twin)
    });
    LatestBlock {
        order: order.number,
        block,
        is_probe: !own.any(|sha256| *sha256 == order.model_sha256),
        segments: segments.collect(),
    }
}
