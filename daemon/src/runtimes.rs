//! The options that say which runtimes this machine has beside the agent's own, and what they add to it.

use std::path::PathBuf;

use layerlab_farm::discovery::Choice;
use layerlab_farm::host_runtimes::HostRuntimes;
use layerlab_farm::local::LocalLink;
use layerlab_farm::{Link, LinkError};
use layerlab_profiles::document::Processor;

#[derive(clap::Args)]
#[command(next_help_heading = "Runtimes of --device host")]
pub(super) struct RuntimeArgs {
    /// Also measure with ONNX Runtime, whose libonnxruntime.so is in this folder
    #[arg(
        long,
        env = "LAYERLAB_ONNXRUNTIME",
        value_name = "FOLDER",
        hide_env = true
    )]
    onnxruntime: Option<PathBuf>,
    /// Also measure on Qualcomm's Hexagon, with libonnxruntime_providers_qnn.so and libQnnHtp.so of this folder
    #[arg(long, env = "LAYERLAB_QNN", value_name = "FOLDER", hide_env = true)]
    qnn: Option<PathBuf>,
    /// On a computer: have Qualcomm's libraries emulate the Hexagon of this SoC, such as SM8550. Its answers are the
    /// Hexagon's, its times are no phone's; everything says `emulated`
    #[arg(long, env = "LAYERLAB_EMULATE", value_name = "SOC", hide_env = true)]
    emulate: Option<String>,
    /// Measure this CPU processor, such as cpu:all, as if it were an accelerator: in segments that are run by themselves, as a
    /// server's groups of layers are, and not layer by layer in passes
    #[arg(
        long,
        env = "LAYERLAB_AS_ACCELERATOR",
        value_name = "PROCESSOR",
        hide_env = true
    )]
    as_accelerator: Option<String>,
}

impl RuntimeArgs {
    /// As the agent of this machine is told.
    pub(super) fn settings(&self) -> HostRuntimes {
        HostRuntimes {
            onnxruntime: self.onnxruntime.clone(),
            qnn: self.qnn.clone(),
            emulate: self.emulate.clone(),
            as_accelerator: self.as_accelerator.clone(),
        }
    }

    /// The processors that this machine has with these runtimes, as its agent finds them; `None` if nothing was said of
    /// runtimes, for asking takes seconds.
    pub(super) async fn processors(
        &self,
        agent: PathBuf,
    ) -> Option<Result<Vec<Processor>, LinkError>> {
        let runtimes = self.settings();
        if runtimes.are_none() {
            return None;
        }
        let asked = async {
            let link = LocalLink::new(agent.clone(), Choice::Host);
            let link = link.map_err(|source| LinkError::NoAgent {
                program: agent,
                source,
            })?;
            let connection = link.with_runtimes(runtimes).connect().await?;
            Ok(connection.hello.processors)
        };
        Some(asked.await)
    }
}

/// A processor in a few words.
pub(super) fn in_words(processor: &Processor) -> String {
    let Processor {
        name,
        numerics,
        runtime,
        runtime_version,
        ..
    } = processor;
    let numerics = format!("{numerics:?}").to_lowercase();
    let emulated = match processor.emulated {
        true => ", emulated",
        false => "",
    };
    format!("{name} ({numerics}, {runtime} {runtime_version}{emulated})")
}
