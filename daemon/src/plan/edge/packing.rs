//! Tensors that cross the link packed, where they arrive sooner so (jointdnn §4.2).

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use layerlab_planners::edge::{Direction, MeasuredNetwork, Packed, SplitPlan, TensorTransfer};
use layerlab_profiles::document::Profile;
use layerlab_profiles::link::LinkDirection;
use layerlab_profiles::tensors::{
    CrossingAccuracy, TensorCodec, TensorsDocument, TensorsSet, check_tensors_directory,
    drawn_pictures,
};
use layerlab_protocol::EdgePacking;
use serde_json::{Value, json};

use crate::exit::{Code, ExitWith, Failure};
use crate::findings::note_or_refuse;

#[derive(clap::Args)]
pub(super) struct PackingArgs {
    /// What `layerlab tensors measure` found on the phone: tensors then cross the link packed where they arrive sooner so, which
    /// includes packing and unpacking. Such plans are made for the latency alone
    #[arg(long, value_name = "FOLDER", requires = "remote_tensors")]
    tensors: Option<PathBuf>,
    /// With --tensors: what it found on the server
    #[arg(long, value_name = "FOLDER", requires = "tensors")]
    remote_tensors: Option<PathBuf>,
    /// With --tensors: what they may be packed by, separated by commas. Those of 8 bits cost accuracy; the plan says how much
    #[arg(
        long,
        value_name = "CODECS",
        value_delimiter = ',',
        default_values_t = [TensorCodec::F32Zstd, TensorCodec::F32Lz4],
        requires = "tensors"
    )]
    codecs: Vec<TensorCodec>,
}

/// What tensors may be packed by, and what that takes on either side.
pub(super) struct Packings {
    phone: TensorsDocument,
    server: TensorsDocument,
    codecs: Vec<TensorCodec>,
}

impl PackingArgs {
    /// Reads what was measured, if tensors may be packed.
    pub(super) fn read(&self) -> Result<Option<Packings>, Failure> {
        let (Some(phone), Some(server)) = (&self.tensors, &self.remote_tensors) else {
            return Ok(None);
        };
        let named = |codec: &TensorCodec| self.codecs.contains(codec);
        let packings = Packings {
            phone: sound_tensors(phone)?,
            server: sound_tensors(server)?,
            codecs: TensorCodec::ALL.into_iter().filter(named).collect(),
        };
        if let Some(codec) = packings.lossy()
            && !packings.phone.header.judged
        {
            let error = anyhow!(
                "what {codec} costs in accuracy is not known, for {} was measured with --sizes-only; measure without it, or leave \
                 {codec} out of --codecs",
                phone.display()
            );
            return Err(Failure::new(Code::Input, error));
        }
        Ok(Some(packings))
    }
}

impl Packings {
    /// A codec that costs accuracy.
    pub(super) fn lossy(&self) -> Option<TensorCodec> {
        self.codecs.iter().copied().find(|it| it.is_eight_bit())
    }

    /// The pictures whose tensors were packed: their set, and their places in it.
    pub(super) fn pictures(&self) -> (&TensorsSet, Vec<u64>) {
        let header = &self.phone.header;
        let drawn = drawn_pictures(header.set.images, header.pictures, header.seed);
        (&header.set, drawn)
    }

    /// The network whose tensors may be packed.
    pub(super) fn applied_to(
        &self,
        network: MeasuredNetwork,
        profiles: [&Profile; 2],
    ) -> Result<MeasuredNetwork, Failure> {
        let tensors = [&self.phone, &self.server];
        let network = network.with_packings(profiles, tensors, &self.codecs);
        network.exit_with(Code::Input)
    }

    /// What a transfer after a layer costs in accuracy; nothing where it keeps all bits.
    fn loss(&self, codec: TensorCodec, cut: u32) -> Option<&CrossingAccuracy> {
        let mut crossings = self.phone.crossings.iter();
        crossings.find(|it| codec.is_eight_bit() && it.cut == cut)
    }

    /// How a tensor of a plan is packed that leaves a layer, for a person.
    pub(super) fn text(&self, codec: TensorCodec, packed: Packed, cut: u32) -> String {
        let times = format!(
            "packed by {codec} in {} and unpacked in {}",
            packed.pack, packed.unpack
        );
        let Some(crossing) = self.loss(codec, cut) else {
            return times;
        };
        let (set, loss) = (&self.phone.header.set, &crossing.loss);
        let (low, high) = loss.ci95;
        format!(
            "{times}; 8 bits at this cut cost {:.4} ({low:+.4} to {high:+.4}) of the score on {} pictures of {}",
            loss.value, crossing.pictures, set.name
        )
    }

    /// The same for a program.
    pub(super) fn add_to(&self, told: &mut Value, codec: TensorCodec, packed: Packed, cut: u32) {
        told["codec"] = json!(codec);
        told["pack_ns"] = json!(packed.pack);
        told["unpack_ns"] = json!(packed.unpack);
        if let Some(crossing) = self.loss(codec, cut) {
            told["loss"] = json!(crossing.loss.value);
            told["loss_ci95"] = json!(crossing.loss.ci95);
            told["loss_pictures"] = json!(crossing.pictures);
        }
    }
}

/// What of a plan crosses packed, as an agent is told.
pub(super) fn edge_packings(network: &MeasuredNetwork, plan: &SplitPlan) -> Vec<EdgePacking> {
    let packing = |transfer: &TensorTransfer| {
        Some(EdgePacking {
            after_layer: network.network().tensors()[transfer.tensor].producer,
            direction: match transfer.direction {
                Direction::Upload => LinkDirection::Upload,
                Direction::Download => LinkDirection::Download,
            },
            codec: transfer.codec?,
        })
    };
    plan.transfers().iter().filter_map(packing).collect()
}

/// What the transfers of a plan are packed by, as `upload f32-zstd`; empty where they cross as they are.
pub(super) fn packed_by(transfers: &[TensorTransfer]) -> String {
    let packed = transfers
        .iter()
        .filter_map(|it| Some(format!("{} {}", it.direction, it.codec?)));
    packed.collect::<Vec<String>>().join("; ")
}

/// Reads what was measured of tensors; says what is doubtful of it, and refuses what contradicts itself.
fn sound_tensors(folder: &Path) -> Result<TensorsDocument, Failure> {
    let (tensors, findings) = check_tensors_directory(folder).exit_with(Code::Input)?;
    note_or_refuse(folder, &findings)?;
    Ok(tensors)
}
