//! Runs that measure links. They have no journal: one that leaves its device before it has ended begins anew.

use std::time::{Duration, Instant};

use layerlab_campaign::{LinkCampaign, LinkSettings};
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio::time::interval;

use super::OpenDevice;
use super::measured::Measured;
use super::outcome::unmeasured;
use crate::bench::{Assignment, Desk, News};
use crate::record::Spent;
use crate::state::StayOutcome;

/// How often it is told how far a measurement is.
const TELL: Duration = Duration::from_secs(1);

/// Measures a link from the device, or from this host if it is that, when the lab measures no other: two would share what
/// carries them, and the server.
pub(super) async fn measure(
    turn: &Mutex<()>,
    link: &LinkSettings,
    device: &OpenDevice,
    assignment: &Assignment,
    desk: &Desk,
    spent: &mut Spent,
) -> Result<Measured, StayOutcome> {
    let campaign = LinkCampaign::prepare(link.clone()).map_err(unmeasured)?;
    let _turn = turn_of(turn, assignment, desk).await?;
    let (sender, so_far) = watch::channel((0, None));
    let progress = move |done, of| {
        sender.send_replace((done, Some(of)));
    };
    let measuring = async {
        match device {
            OpenDevice::Local(_) => campaign.measure_here(progress).await,
            OpenDevice::Phone { link, .. } => campaign.measure_from(link, progress).await,
        }
    };
    let telling = async {
        let (mut ticks, mut told) = (interval(TELL), Instant::now());
        loop {
            ticks.tick().await;
            let (progress, busy) = (*so_far.borrow(), told.elapsed());
            told = Instant::now();
            desk.tell(News::Progress { progress, busy }).await;
        }
    };
    let began = Instant::now();
    let measured = tokio::select! {
        measured = measuring => measured.map_err(unmeasured),
        () = assignment.asked_to_leave() => Err(StayOutcome::Parked),
        () = telling => unreachable!("it goes on for ever"),
    };
    spent.busy_ms += began.elapsed().as_millis() as u64;
    let measured = measured?;
    desk.tell(News::BlockEnded { rejection: None }).await;
    Ok(Measured::Link(Box::new(measured)))
}

/// Waits for the turn to measure.
async fn turn_of<'a>(
    turn: &'a Mutex<()>,
    assignment: &Assignment,
    desk: &Desk,
) -> Result<MutexGuard<'a, ()>, StayOutcome> {
    if let Ok(taken) = turn.try_lock() {
        return Ok(taken);
    }
    let why = "another link is being measured, which this one would disturb".to_owned();
    desk.tell(News::NotReady(Some(why))).await;
    let taken = tokio::select! {
        taken = turn.lock() => Ok(taken),
        () = assignment.asked_to_leave() => Err(StayOutcome::Parked),
    };
    desk.tell(News::NotReady(None)).await;
    taken
}
