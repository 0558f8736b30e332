//! The journals of a campaign: one for each of its parts, and what is known of it already.

use layerlab_protocol::{Entry, RunId};
use time::OffsetDateTime;

/// The parts of campaigns, each with a journal of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CampaignPart {
    /// What inferences draw.
    Energy,
    /// How long everything takes.
    Times,
    /// How long everything takes on a device that has been kept busy.
    Steady,
    /// What answers are worth.
    Accuracy,
    /// What answering frames costs, and what the answers are: all that a measurement of frames consists of.
    Video,
    /// What tensors that cross cuts become when they are compressed: all that such a measurement consists of. No job has it.
    Tensors,
}

impl CampaignPart {
    /// Every part, in the order in which a campaign works on them.
    pub const ALL: [CampaignPart; 6] = [
        CampaignPart::Energy,
        CampaignPart::Times,
        CampaignPart::Steady,
        CampaignPart::Accuracy,
        CampaignPart::Video,
        CampaignPart::Tensors,
    ];
}

/// A journal on a device, and what is known of it already.
#[derive(Clone, Debug)]
pub struct KnownJournal {
    /// What the journal is called on the device.
    pub id: RunId,
    /// When it was begun.
    pub started: OffsetDateTime,
    /// Its entries, from the first, that were followed before. The follower does not see them again.
    pub entries: Vec<Entry>,
}

impl KnownJournal {
    /// A journal that is begun now, under a name that sorts by time and that no other one has.
    pub fn fresh() -> KnownJournal {
        let started = OffsetDateTime::now_utc();
        let (date, time) = (started.date(), started.time());
        let name = format!(
            "{:04}{:02}{:02}T{:02}{:02}{:02}Z-{:08x}",
            date.year(),
            u8::from(date.month()),
            date.day(),
            time.hour(),
            time.minute(),
            time.second(),
            rand::random::<u32>()
        );
        KnownJournal {
            id: RunId::new(name).expect("digits, letters and a dash"),
            started,
            entries: Vec::new(),
        }
    }
}

impl From<RunId> for KnownJournal {
    /// A journal that is begun now, under this name.
    fn from(id: RunId) -> KnownJournal {
        KnownJournal {
            id,
            started: OffsetDateTime::now_utc(),
            entries: Vec::new(),
        }
    }
}
