//! `layerlab reserve` and `layerlab release`: devices that engineers take from the lab for a while.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::exit::{Code, ExitWith, Failure};
use super::output;
use super::which_lab::{Lab, LabArgs};
use layerlab_farm::adb::Printable;
use layerlab_lab::query::open_reservations;
use layerlab_lab::talk::Request;
use layerlab_lab::text_table::table;
use layerlab_lab::when::{Direction, moment, point};

#[derive(clap::Args)]
pub(super) struct ReserveArgs {
    /// The phone's serial, or the name by which `layerlab devices` lists it
    #[arg(required_unless_present = "list", conflicts_with = "list")]
    device: Option<String>,
    /// Until when, such as 18:00, `tomorrow 07:00` or 8h
    #[arg(
        long,
        value_name = "WHEN",
        required_unless_present = "list",
        conflicts_with = "list"
    )]
    until: Option<String>,
    /// From when; a run that is on it then is parked [default: now]
    #[arg(long, value_name = "WHEN", conflicts_with = "list")]
    from: Option<String>,
    /// For whom or what, for whoever wants it meanwhile
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    note: String,
    /// Print what is reserved
    #[arg(long)]
    list: bool,
    /// Print JSON
    #[arg(long, requires = "list")]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct ReleaseArgs {
    /// The device, as it was reserved
    device: String,
}

pub(super) async fn run(args: &ReserveArgs, lab: &LabArgs) -> Result<(), Failure> {
    let lab = lab.open()?;
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    let (Some(device), Some(until)) = (&args.device, &args.until) else {
        return list(&lab, args.json, now, &zone).await;
    };
    let at = |text: &str| point(text, now, Direction::Next, &zone).exit_with(Code::Usage);
    let from = args.from.as_deref().map_or(Ok(now), at)?;
    let until = at(until)?;
    let told = |at| moment(at, now, &zone);
    if until <= from || until <= now {
        let error = anyhow::anyhow!(
            "--until is {}, and the reservation would begin at {}; choose a later --until",
            told(until),
            told(from)
        );
        return Err(Failure::new(Code::Usage, error));
    }
    let request = Request::Reserve {
        device: device.clone(),
        from,
        until,
        note: args.note.clone(),
    };
    lab.tell(&request).await?;
    let device = Printable(device);
    output::print(format_args!(
        "{device} is reserved from {} to {}; `layerlab release {device}` gives it back earlier.",
        told(from),
        told(until)
    ))
}

async fn list(lab: &Lab, json: bool, now: Timestamp, zone: &TimeZone) -> Result<(), Failure> {
    let (kept, _) = lab.jobs(false).await?;
    let reserved = open_reservations(&kept, now);
    if json {
        return output::print_json(&reserved);
    }
    if reserved.is_empty() {
        return output::print("no device is reserved");
    }
    let rows = reserved.iter().map(|one| {
        vec![
            Printable(&one.device).to_string(),
            moment(one.from, now, zone),
            moment(one.until, now, zone),
            Printable(&one.note).to_string(),
        ]
    });
    output::print(table(&["device", "from", "until", "note"], &[], rows))
}

pub(super) async fn release(args: &ReleaseArgs, lab: &LabArgs) -> Result<(), Failure> {
    let device = args.device.clone();
    lab.open()?.tell(&Request::Release { device }).await?;
    output::print(format_args!(
        "{} is the lab's again",
        Printable(&args.device)
    ))
}
