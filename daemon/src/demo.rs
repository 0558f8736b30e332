//! `layerlab demo`: the main job with no phone, on simulated ones.

use std::path::PathBuf;

use futures_util::future::join_all;
use layerlab_profiles::document::Profile;

use super::campaign;
use super::exit::{Code, ExitWith, Failure};
use super::output;
use super::profile::SettingsArgs;
use super::progress::{Bars, CampaignBars};
use super::show::{self, Whole};
use layerlab_campaign::{Campaign, ModelFile};
use layerlab_farm::discovery::{BUILT_IN, BuiltIn, Choice};
use layerlab_farm::local::LocalLink;
use layerlab_lab::text_table::table;

/// The networks that come with layerlab: random weights, real structure.
const MODELS: [(&str, &[u8]); 2] = [
    (
        "yolo-small",
        include_bytes!("../../tests/models/yolo-small.onnx"),
    ),
    ("alexnet", include_bytes!("../../tests/models/alexnet.onnx")),
];

#[derive(clap::Args)]
pub(super) struct DemoArgs {
    /// Where to publish the profiles, one folder per phone and model
    #[arg(long, value_name = "FOLDER", default_value = "layerlab-demo")]
    out: PathBuf,
    /// Replace profiles that are already there
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    settings: SettingsArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Where a profile was published, and the profile.
type InFolder = (PathBuf, Profile);

pub(super) async fn run(args: &DemoArgs, agent: Option<PathBuf>) -> Result<(), Failure> {
    let agent = campaign::agent_program(agent)?;
    let models = MODELS
        .iter()
        .map(|(_, onnx)| ModelFile::from_onnx(onnx))
        .collect::<Result<Vec<_>, _>>()
        .exit_with(Code::Internal)?;
    if !args.json {
        output::print(format_args!(
            "Profiling {} on {} simulated phones: no number below is of a real one.",
            MODELS.map(|(name, _)| name).join(" and "),
            BUILT_IN.len()
        ))?;
    }
    let bars = Bars::new();
    let phones = BUILT_IN
        .iter()
        .map(|phone| one_phone(args, phone, &models, &agent, &bars));
    let mut published: Vec<InFolder> = Vec::new();
    let mut failures = Vec::new();
    // One phone's failure does not stop another's work.
    for result in join_all(phones).await {
        match result {
            Ok(profiles) => {
                if !args.json {
                    output::print(format_args!("\n{}", phone_table(&profiles)))?;
                }
                published.extend(profiles);
            }
            Err(failure) => failures.push(failure),
        }
    }
    if args.json {
        let summaries: Vec<_> = published
            .iter()
            .map(|(path, p)| show::summary(p, path))
            .collect();
        output::print_json(&summaries)?;
    } else if let Some((path, _)) = published.first() {
        let path = path.display();
        output::print(format_args!(
            "\nEvery layer of one of them: layerlab show {path}"
        ))?;
    }
    let last = failures.pop();
    failures.iter().for_each(output::error);
    last.map_or(Ok(()), Err)
}

/// One phone measures one model after the other; the phones work side by side.
async fn one_phone(
    args: &DemoArgs,
    phone: &BuiltIn,
    models: &[ModelFile],
    agent: &std::path::Path,
    bars: &Bars,
) -> Result<Vec<InFolder>, Failure> {
    let mut published = Vec::new();
    for model in models {
        let device = Choice::BuiltIn(phone.name, phone.toml);
        let out = args.out.join(phone.name).join(model.network.name());
        let link = LocalLink::new(agent.to_owned(), device).exit_with(Code::Output)?;
        let campaign = Campaign {
            model,
            times: args.settings.settings(),
            accuracy: None,
            target: out.clone(),
            replace: args.replace,
            signing_key: None,
        };
        let mut follower = CampaignBars::new(bars, model.network.name(), phone.name);
        let done = campaign.run(&link, &mut follower).await;
        published.push((out, done.map_err(campaign::campaign_failure)?.profile));
    }
    Ok(published)
}

fn phone_table(profiles: &[InFolder]) -> String {
    let first = profiles.first().map(|(_, profile)| profile);
    let title = first.map_or_else(String::new, |profile| show::device(&profile.header));
    // All models were measured on the same processors.
    let accelerators = first
        .and_then(Whole::of)
        .map_or_else(Vec::new, |whole| whole.accelerators);
    let rows = profiles.iter().map(|(path, profile)| {
        let whole = Whole::of(profile);
        let cpu = whole.as_ref().map(|whole| whole.cpu);
        let fastest = whole.as_ref().and_then(Whole::fastest_accelerator);
        let speed_up = cpu
            .zip(fastest)
            .map(|(cpu, npu)| cpu.as_nanos() as f64 / npu.as_nanos() as f64);
        let text = |time: Option<_>| time.map_or_else(String::new, |time| format!("{time}"));
        let mut cells = vec![
            profile.header.model.name.clone(),
            profile.layers.len().to_string(),
            profile.samples.len().to_string(),
            text(cpu),
        ];
        let wholes = whole.map_or_else(Vec::new, |whole| whole.accelerators);
        cells.extend(wholes.into_iter().map(|(_, time)| text(Some(time))));
        cells.push(speed_up.map_or_else(String::new, |ratio| format!("{ratio:.1}x")));
        cells.push(path.display().to_string());
        cells
    });
    let mut heads: Vec<String> = ["model", "layers", "samples", "all on CPU"]
        .map(str::to_owned)
        .to_vec();
    let on = |(name, _): &(String, _)| format!("all on {}", name.to_uppercase());
    heads.extend(accelerators.iter().map(on));
    heads.extend(["speed-up", "profile"].map(str::to_owned));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let numbers: Vec<usize> = (1..heads.len() - 1).collect();
    format!("{title}\n{}", table(&heads, &numbers, rows))
}
