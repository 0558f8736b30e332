//! One device: what it is doing, who has taken it, and the forms that take it from the lab or give it back.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use layerlab_farm::adb::Printable;
use layerlab_lab::query::open_reservations;
use layerlab_lab::record::{Device, Event, Reservation};
use layerlab_lab::talk::{DeviceState, DeviceStatus, Request};
use layerlab_lab::when::{self, Direction};
use maud::{Markup, html};

use super::jobs::happened;
use super::layout::{Page, ProblemPage, badge, simulated_mark};
use super::path::segment;
use super::posted::Posted;
use super::told::{progress, when};
use crate::access::Caller;
use crate::extract::InPath;
use crate::lab::WebState;
use crate::problem::Problem;

/// What happened to it in so many days is shown.
const DAYS: i64 = 7;

/// Of a quarantine about which nothing else is said, as of the command line's.
const USUAL_QUARANTINE: Duration = Duration::from_secs(3600);

/// One device.
pub(super) async fn show(
    State(state): State<WebState>,
    caller: Caller,
    InPath(name): InPath<String>,
) -> Result<Page, ProblemPage> {
    let form = caller.may_change().then(Filled::default);
    page(&state, &name, form.as_ref()).await
}

/// What was filled in.
#[derive(Default)]
struct Filled {
    from: String,
    until: String,
    note: String,
    reason: String,
    period: String,
}

/// Who looks at where a form was sent to, after a login in between say, sees the device's page.
pub(super) async fn back(InPath((name, _)): InPath<(String, String)>) -> Redirect {
    Redirect::to(&format!("/devices/{}", segment(&name)))
}

/// Reserves a device, gives it back, leaves it alone or uses it again, and shows it.
pub(super) async fn change(
    State(state): State<WebState>,
    InPath((name, change)): InPath<(String, String)>,
    posted: Posted,
) -> Result<Response, ProblemPage> {
    let field = |name| posted.field(name).unwrap_or_default().to_owned();
    let filled = Filled {
        from: field("from"),
        until: field("until"),
        note: field("note"),
        reason: field("reason"),
        period: field("for"),
    };
    let asked = match request(&name, &change, &filled) {
        Ok(request) => state.ask(request, Some(&posted.by)).await,
        Err(problem) => Err(problem),
    };
    let address = format!("/devices/{}", segment(&name));
    match asked {
        Ok(_) => Ok(Redirect::to(&address).into_response()),
        Err(problem) => {
            let page = page(&state, &name, Some(&filled)).await?;
            Ok(page.refusing(problem, address).into_response())
        }
    }
}

fn request(name: &str, change: &str, filled: &Filled) -> Result<Request, Problem> {
    let device = name.to_owned();
    let point = |field: &str, text: &str| {
        let point = when::point(text, Timestamp::now(), Direction::Next, &TimeZone::system());
        point.map_err(|error| Problem::unusable(format!("{field}: {error}")))
    };
    Ok(match change {
        "reserve" => Request::Reserve {
            device,
            from: match filled.from.as_str() {
                "" => Timestamp::now(),
                text => point("From", text)?,
            },
            until: point("Until", &filled.until)?,
            note: filled.note.clone(),
        },
        "release" => Request::Release { device },
        "quarantine" => Request::Quarantine {
            phone: device,
            reason: match filled.reason.as_str() {
                "" => return Err(Problem::unusable("Reason: it is missing; say why")),
                reason => reason.to_owned(),
            },
            period: match filled.period.as_str() {
                "" => USUAL_QUARANTINE,
                text => when::period(text)
                    .map_err(|error| Problem::unusable(format!("For: {error}")))?,
            },
        },
        "lift" => Request::Lift { phone: device },
        _ => {
            return Err(Problem::not_found(
                "nothing of this name is done to devices",
            ));
        }
    })
}

/// The page, with forms if somebody may use them.
async fn page(state: &WebState, name: &str, forms: Option<&Filled>) -> Result<Page, ProblemPage> {
    let kept = state.lab.reader.unfinished().await?;
    let known = kept.devices.get(name);
    let Some(device) = known.or_else(|| kept.devices.values().find(|it| it.is_called(name))) else {
        return Err(Problem::not_found(format!("the lab has never seen a device `{name}`")).into());
    };
    let now = Timestamp::now();
    let status = state.status().await?;
    let mut statuses = status.devices.iter();
    let status = statuses.find(|status| status.device.name == device.name);
    let mut reserved = open_reservations(&kept, now);
    reserved.retain(|one| one.device == device.name);
    let since = now.checked_sub(SignedDuration::from_hours(24 * DAYS));
    let since = since.map_err(Problem::internal)?;
    let events = state.lab.reader.events(since, Timestamp::MAX).await?;
    let events: Vec<&Event> = events
        .iter()
        .filter(|event| event.device.as_deref() == Some(&device.name))
        .collect();
    let may_change = forms.is_some();
    let content = html! {
        h1 {
            (Printable(&device.name)) (simulated_mark(device.simulated, false)) " "
            @if let Some(status) = status { (badge(&status.state.to_string())) }
        }
        (doing(device, status, may_change))
        dl { (facts(device)) }
        h2 { "Reservations" }
        (reservations(device, &reserved, may_change))
        h2 { "What happened in " (DAYS) " days" }
        (happened(&events))
    };
    let page = Page::new(&device.name, "/", content).live();
    Ok(match forms {
        Some(filled) => page.with_forms(take_it(device, filled)),
        None => page,
    })
}

fn doing(device: &Device, status: Option<&DeviceStatus>, may_change: bool) -> Markup {
    let Some(status) = status else {
        return html! { p { "It is not there now, and nothing waits for it." } };
    };
    html! {
        p { (status.state) " since " (when(status.since)) }
        @if let Some(host) = &status.host { p.note { "on host " (Printable(host)) } }
        @if let Some(run) = status.run { p { a href={ "/runs/" (run) } { "Run " (run) } } }
        @if let Some(done) = status.progress { (progress(done)) }
        @if let Some(reason) = &status.reason { p.reason { (Printable(reason)) } }
        @if let Some(at) = status.free_at { p.note { "free about " (when(at)) } }
        @if may_change && status.state == DeviceState::Quarantined {
            (button(device, "lift", "Use it again"))
        }
    }
}

fn facts(device: &Device) -> Markup {
    let processors = device.processors.as_ref().map(|names| names.join(", "));
    let android = device.android.map(|version| version.to_string());
    let pools = (!device.pools.is_empty()).then(|| device.pools.join(", "));
    let all = [
        ("What it is", Some(device.description.clone())),
        ("Serial", Some(device.serial.clone())),
        ("Address", device.address.clone()),
        ("SoC", device.soc.clone()),
        ("Binary interface", device.abi.clone()),
        ("Android", android),
        ("Pools", pools),
        ("Processors", processors),
    ];
    let known = all
        .into_iter()
        .filter_map(|(name, fact)| Some((name, fact?)));
    html! { @for (name, fact) in known { dt { (name) } dd { (Printable(&fact)) } } }
}

fn reservations(device: &Device, reserved: &[&Reservation], may_change: bool) -> Markup {
    html! {
        @if reserved.is_empty() { p { "Nobody has taken it." } } @else {
            div.table { table {
                thead { tr { th scope="col" { "From" } th scope="col" { "Until" } th scope="col" { "For" } } }
                tbody {
                    @for one in reserved {
                        tr {
                            td data-head="From" { (when(one.from)) }
                            td data-head="Until" { (when(one.until)) }
                            td data-head="For" { (Printable(&one.note)) }
                        }
                    }
                }
            } }
            @if may_change {
                (button(device, "release", if reserved.len() == 1 { "Give it back" } else { "Give all of it back" }))
            }
        }
    }
}

fn action(device: &Device, change: &str) -> String {
    format!("/devices/{}/{change}", segment(&device.name))
}

fn button(device: &Device, change: &str, words: &str) -> Markup {
    html! {
        div.buttons { form action=(action(device, change)) method="post" { button { (words) } } }
    }
}

fn take_it(device: &Device, filled: &Filled) -> Markup {
    html! {
        div.forms {
            section {
                h2 { "Reserve it" }
                form.fields action=(action(device, "reserve")) method="post" {
                    label for="from" { "From" }
                    input #from name="from" value=(filled.from) placeholder="now";
                    label for="until" { "Until" }
                    input #until name="until" value=(filled.until) placeholder="8h, 22:00 or tomorrow 07:00" required;
                    label for="note" { "For whom or what" }
                    input #note name="note" value=(filled.note);
                    button { "Reserve" }
                }
            }
            section {
                h2 { "Leave it alone" }
                form.fields action=(action(device, "quarantine")) method="post" {
                    label for="reason" { "Reason" }
                    input #reason name="reason" value=(filled.reason) required;
                    label for="for" { "For" }
                    input #for name="for" value=(filled.period) placeholder=(humantime::format_duration(USUAL_QUARANTINE));
                    button { "Leave alone" }
                }
            }
        }
    }
}
