//! `layerlab devices`: what `--device` can name.

use super::exit::Failure;
use super::output;
use super::show::table;
use crate::device::discovery;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let devices = discovery::list();
    if args.json {
        return output::print_json(&devices);
    }
    let rows = devices.into_iter().map(|device| {
        let kind = if device.simulated {
            "simulated"
        } else {
            "real"
        };
        vec![
            device.name,
            device.link.to_owned(),
            kind.to_owned(),
            device.description,
        ]
    });
    output::print(table(&["device", "link", "kind", "description"], &[], rows))
}
