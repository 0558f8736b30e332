//! Which processors the digits of placements stand for: the choice that evaluations, plans and exports have.

/// The processors of placements, in one list or by their digits.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct PlacedOnArgs {
    /// The processors of a placement's digits, a CPU first, such as cpu,gpu,npu, in place of --cpu and
    /// --accelerator
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with_all = ["cpu", "accelerator"]
    )]
    processors: Vec<String>,
    /// The processor for layers marked 0 [default: the profile's first CPU]
    #[arg(long, value_name = "NAME")]
    cpu: Option<String>,
    /// The processor for layers marked 1, or several such as gpu,npu for layers marked 1, 2 and so on
    /// [default: the profile's first accelerator]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    accelerator: Vec<String>,
}

impl PlacedOnArgs {
    /// As --processors lists them, the CPU first.
    pub(super) fn listed(processors: &[String]) -> PlacedOnArgs {
        PlacedOnArgs {
            processors: processors.to_vec(),
            ..PlacedOnArgs::default()
        }
    }

    /// What was chosen.
    pub(super) fn by_digit(&self) -> anyhow::Result<ByDigit> {
        ByDigit {
            cpu: self.cpu.clone(),
            accelerators: self.accelerator.clone(),
        }
        .unless_listed(&self.processors)
    }
}

/// The processors of the digits that were named; those that were not are the first of their kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ByDigit {
    /// The processor for layers marked 0.
    pub(super) cpu: Option<String>,
    /// The processors for layers marked 1, 2 and so on.
    pub(super) accelerators: Vec<String>,
}

impl ByDigit {
    /// What `--processors` lists, if it lists any.
    pub(super) fn unless_listed(self, processors: &[String]) -> anyhow::Result<ByDigit> {
        match processors {
            [] => Ok(self),
            [only] => anyhow::bail!(
                "--processors names `{only}` alone; name a CPU and the accelerators of the other digits, such as \
                 cpu,gpu,npu"
            ),
            [cpu, accelerators @ ..] => Ok(ByDigit {
                cpu: Some(cpu.clone()),
                accelerators: accelerators.to_vec(),
            }),
        }
    }

    /// The accelerators as planners take them.
    pub(super) fn accelerators(&self) -> Vec<&str> {
        self.accelerators.iter().map(String::as_str).collect()
    }
}
