//! `layerlab direct-child`: the process that speaks to one phone without an adb server. Not for people.

use std::path::PathBuf;

#[derive(clap::Args)]
pub(super) struct DirectChildArgs {
    /// The private key that phones know this host by
    #[arg(long)]
    key: PathBuf,
    /// tcp:HOST:PORT or usb:SERIAL, or `look` to look for phones
    target: String,
}

pub(super) fn run(args: &DirectChildArgs) -> ! {
    layerlab_direct::serve(&args.target, &args.key)
}
