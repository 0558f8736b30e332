//! `layerlab demo`: the whole mission with no phone, on simulated ones: times, what placements lose, a plan, and its proof.

mod page;
mod planned;
mod scenes;

use std::path::{Path, PathBuf};
use std::time::Instant;

use futures_util::future::join_all;
use layerlab_profiles::document::Profile;

use super::campaign;
use super::exit::{Code, ExitWith, Failure};
use super::output;
use super::percent::Percent;
use super::plan::describe::describe;
use super::plan::{Predicted, beside_table};
use super::profile::SettingsArgs;
use super::progress::{Bars, CampaignBars};
use super::show::{self, Whole};
use layerlab_campaign::publish::{PublishError, StagedFile};
use layerlab_campaign::{
    AccuracySettings, Campaign, CampaignAccuracy, ModelFile, Placements, SetFile,
};
use layerlab_farm::discovery::{BUILT_IN, BuiltIn, Choice};
use layerlab_farm::local::LocalLink;
use layerlab_lab::text_table::table;
use planned::Planned;

/// The networks of which only times are measured: random weights, real structure.
const MODELS: [(&str, &[u8]); 2] = [
    (
        "yolo-small",
        include_bytes!("../../tests/models/yolo-small.onnx"),
    ),
    ("alexnet", include_bytes!("../../tests/models/alexnet.onnx")),
];

/// A network that was trained, so that its answers are worth something.
const TRAINED: &[u8] = include_bytes!("../../tests/models/vocnet-mini.onnx");

/// The phone that runs it.
const PHONE: &str = "oneplus7";

/// The page of all that was found.
const PAGE: &str = "index.html";

#[derive(clap::Args)]
pub(super) struct DemoArgs {
    /// Where to publish the profiles, one folder per phone and model, and the page with pictures and tables
    #[arg(long, value_name = "FOLDER", default_value = "layerlab-demo")]
    out: PathBuf,
    /// Replace what is already there
    #[arg(long)]
    replace: bool,
    /// Open the page in a browser
    #[arg(long, conflicts_with = "json")]
    open: bool,
    /// How many labelled images placements answer, at most
    #[arg(long, default_value_t = 200, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(60..=1000))]
    images: u64,
    /// How many random placements answer them, beside all layers on each processor and each single one
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    placements: usize,
    #[command(flatten)]
    settings: SettingsArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Where a profile was published, and the profile.
type InFolder = (PathBuf, Profile);

/// What the demo tells of its steps.
struct Steps {
    quiet: bool,
    begun: Instant,
    step: u32,
}

impl Steps {
    /// How many there are.
    const ALL: u32 = 4;

    fn say(&self, text: impl std::fmt::Display) -> Result<(), Failure> {
        match self.quiet {
            true => Ok(()),
            false => output::print(text),
        }
    }

    /// Says what begins.
    fn begin(&mut self, what: impl std::fmt::Display) -> Result<(), Failure> {
        self.step += 1;
        let (step, all, so_far) = (self.step, Steps::ALL, self.begun.elapsed().as_secs());
        self.say(format_args!("\n[{step} of {all}, after {so_far} s] {what}"))
    }
}

pub(super) async fn run(args: &DemoArgs, agent: Option<PathBuf>) -> Result<(), Failure> {
    let agent = campaign::agent_program(agent)?;
    let page = StagedFile::prepare(&args.out.join(PAGE), args.replace);
    let page = page.map_err(campaign::publish_failure)?;
    refuse_published(args)?;
    let mut steps = Steps {
        quiet: args.json,
        begun: Instant::now(),
        step: 0,
    };
    steps.say(
        "Four simulated phones: no number below is of a real one. All of it takes about a minute on two cores.",
    )?;
    let mut published = times(args, &agent, &mut steps).await?;
    let accuracy = accuracy(args, &agent, &mut steps).await?;
    let planned = plan(args, &agent, &accuracy, &mut steps).await?;
    let html = page::write(&published, &accuracy, &planned)?;
    page.publish(html.as_bytes())
        .map_err(campaign::publish_failure)?;
    if args.json {
        published.push(accuracy);
        let summaries: Vec<_> = published
            .iter()
            .map(|(path, profile)| show::summary(profile, path))
            .collect();
        return output::print_json(&summaries);
    }
    let (folder, _) = &accuracy;
    steps.say(format_args!(
        "\nDone in {} s. Every layer in numbers: layerlab show {}\nAll of it with pictures: {}",
        steps.begun.elapsed().as_secs(),
        folder.display(),
        args.out.join(PAGE).display(),
    ))?;
    if args.open {
        open(&args.out.join(PAGE));
    }
    Ok(())
}

/// Refuses what is published already, before anything is measured.
fn refuse_published(args: &DemoArgs) -> Result<(), Failure> {
    if args.replace {
        return Ok(());
    }
    let trained = trained()?;
    let untrained = |phone: &BuiltIn| MODELS.map(|(model, _)| (phone.name, model));
    let all = BUILT_IN.iter().flat_map(untrained);
    let all = all.chain([(PHONE, trained.network.name())]);
    let mut folders = all.map(|(phone, model)| args.out.join(phone).join(model));
    match folders.find(|folder| folder.symlink_metadata().is_ok()) {
        Some(path) => Err(campaign::publish_failure(PublishError::Exists { path })),
        None => Ok(()),
    }
}

/// All phones measure the times of all networks, side by side.
async fn times(args: &DemoArgs, agent: &Path, steps: &mut Steps) -> Result<Vec<InFolder>, Failure> {
    let models = MODELS
        .iter()
        .map(|(_, onnx)| ModelFile::from_onnx(onnx))
        .collect::<Result<Vec<_>, _>>()
        .exit_with(Code::Internal)?;
    steps.begin(format_args!(
        "What do the layers of {} cost on each processor, and moving their data?",
        MODELS.map(|(name, _)| name).join(" and "),
    ))?;
    let bars = Bars::new();
    let phones = BUILT_IN
        .iter()
        .map(|phone| one_phone(args, phone, &models, agent, &bars));
    let mut published: Vec<InFolder> = Vec::new();
    let mut failures = Vec::new();
    // One phone's failure does not stop another's work.
    for result in join_all(phones).await {
        match result {
            Ok(profiles) => {
                steps.say(format_args!("\n{}", phone_table(&profiles)))?;
                published.extend(profiles);
            }
            Err(failure) => failures.push(failure),
        }
    }
    let last = failures.pop();
    failures.iter().for_each(output::error);
    last.map_or(Ok(published), Err)
}

/// One phone measures one model after the other; the phones work side by side.
async fn one_phone(
    args: &DemoArgs,
    phone: &BuiltIn,
    models: &[ModelFile],
    agent: &Path,
    bars: &Bars,
) -> Result<Vec<InFolder>, Failure> {
    let mut published = Vec::new();
    for model in models {
        published.push(measure(args, phone, model, None, agent, bars).await?);
    }
    Ok(published)
}

/// One phone measures one model, and with labelled images what placements lose.
async fn measure(
    args: &DemoArgs,
    phone: &BuiltIn,
    model: &ModelFile,
    set: Option<&SetFile>,
    agent: &Path,
    bars: &Bars,
) -> Result<InFolder, Failure> {
    let out = args.out.join(phone.name).join(model.network.name());
    let link = link(phone, agent)?;
    let campaign = Campaign {
        model,
        times: args.settings.settings(),
        accuracy: set.map(|set| CampaignAccuracy {
            set,
            settings: AccuracySettings {
                placements: Placements::Random(args.placements),
                stop_at_half_width: Some(STOP_AT.share()),
                ..AccuracySettings::default()
            },
        }),
        target: out.clone(),
        replace: args.replace,
        signing_key: None,
        fitness: None,
    };
    let mut follower = CampaignBars::new(bars, model.network.name(), phone.name);
    let done = campaign.run(&link, &mut follower).await;
    Ok((out, done.map_err(campaign::campaign_failure)?.profile))
}

/// A loss that is known to two percentage points is known well enough here.
const STOP_AT: Percent = Percent(2.0);

fn link(phone: &BuiltIn, agent: &Path) -> Result<LocalLink, Failure> {
    let device = Choice::BuiltIn(phone.name, phone.toml);
    LocalLink::new(agent.to_owned(), device).exit_with(Code::Output)
}

/// The phone that the demo plans for.
fn phone() -> Result<&'static BuiltIn, Failure> {
    let mut phones = BUILT_IN.iter();
    let phone = phones.find(|phone| phone.name == PHONE);
    phone.ok_or_else(|| Failure::new(Code::Internal, anyhow::anyhow!("there is no {PHONE}")))
}

fn trained() -> Result<ModelFile, Failure> {
    ModelFile::from_onnx(TRAINED).exit_with(Code::Internal)
}

/// What placements of a trained network lose of its accuracy.
async fn accuracy(args: &DemoArgs, agent: &Path, steps: &mut Steps) -> Result<InFolder, Failure> {
    let (model, phone) = (trained()?, phone()?);
    steps.begin(format_args!(
        "What accuracy does {} lose where its layers run? Up to {} labelled images, {} random placements and each layer alone",
        model.network.name(),
        args.images,
        args.placements,
    ))?;
    let set = scenes::scenes(args.images as usize)?;
    let measured = measure(args, phone, &model, Some(&set), agent, &Bars::new()).await?;
    let (_, profile) = &measured;
    steps.say(page::losses_table(profile))?;
    Ok(measured)
}

/// A plan under a time limit, and what running it gives.
async fn plan(
    args: &DemoArgs,
    agent: &Path,
    (folder, _): &InFolder,
    steps: &mut Steps,
) -> Result<Planned, Failure> {
    steps.begin(
        "Which layers run where, for the most accuracy in two thirds of the CPU's time? Learning what was not measured",
    )?;
    let mut planned = Planned::from_profile(folder)?;
    steps.say(format_args!(
        "within {}:\n{}",
        planned.within,
        describe(&planned.plan, &planned.learnt)
    ))?;
    steps.begin("Is that true? Running the plan on the phone")?;
    let (model, set) = (trained()?, scenes::scenes(args.images as usize)?);
    let link = link(phone()?, agent)?;
    planned.verify(&link, &model, &set).await?;
    if let Some(measured) = planned.measured() {
        steps.say(beside_table(&Predicted::from(&planned.plan), measured))?;
    }
    Ok(planned)
}

/// Opens the page in whatever the desktop opens pages with.
fn open(page: &Path) {
    let opened = std::process::Command::new("xdg-open").arg(page).status();
    match opened {
        Ok(status) if status.success() => {}
        Ok(status) => output::note(format_args!(
            "xdg-open failed ({status}); open the page by hand"
        )),
        Err(error) => output::note(format_args!(
            "cannot open the page by xdg-open ({error}); open it by hand"
        )),
    }
}

/// A model on a phone, in a table.
struct PhoneRow<'a> {
    folder: &'a Path,
    profile: &'a Profile,
}

impl PhoneRow<'_> {
    const HEADS: [&'static str; 6] = [
        "phone",
        "model",
        "layers",
        "all on the CPU",
        "all on an accelerator",
        "profile",
    ];

    fn cells(self) -> Vec<String> {
        let PhoneRow { folder, profile } = self;
        let whole = Whole::of(profile);
        let cpu = whole.as_ref().map(|whole| whole.cpu.to_string());
        let accelerators = whole.as_ref().map_or_else(Vec::new, |whole| {
            let times = whole.accelerators.iter();
            times.map(|(name, time)| format!("{name} {time}")).collect()
        });
        vec![
            show::device(&profile.header),
            profile.header.model.name.clone(),
            profile.layers.len().to_string(),
            cpu.unwrap_or_default(),
            accelerators.join(", "),
            folder.display().to_string(),
        ]
    }
}

fn phone_rows(profiles: &[InFolder]) -> impl Iterator<Item = PhoneRow<'_>> {
    profiles
        .iter()
        .map(|(folder, profile)| PhoneRow { folder, profile })
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
