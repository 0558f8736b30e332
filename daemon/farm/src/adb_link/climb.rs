//! Climbing the recovery ladder for one phone.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::Policy;
use super::recovery::{Ladder, Rung, RungCounts, Way};
use super::usb_port;
use super::whereabouts::Whereabouts;
use crate::adb::{AdbError, Route, Row, State};

/// How often to ask for a phone at a network address that is not there: the server itself does not
/// listen for it.
const CALL: Duration = Duration::from_millis(500);

/// The wait before trying the same again.
const MOMENT: Duration = Duration::from_millis(250);

/// Climbs the ladder for one phone and one purpose.
pub(super) struct Climb<'a> {
    whereabouts: &'a Whereabouts,
    ladder: Ladder,
    failures: &'a RungCounts,
    end: Instant,
}

impl<'a> Climb<'a> {
    pub(super) fn start(whereabouts: &'a Whereabouts, policy: &'a Policy) -> Climb<'a> {
        Climb {
            whereabouts,
            ladder: Ladder::new(Way {
                network: whereabouts.address().is_some(),
                own_server: whereabouts.route().is_own_server(),
                may_reboot: policy.may_reboot,
            }),
            failures: &policy.failures,
            end: Instant::now() + policy.patience,
        }
    }

    /// Does what the ladder says after `error`, or gives up. Returns whether the agent is to be started
    /// anew by the next attempt.
    pub(super) async fn after(&mut self, error: AdbError) -> Result<bool, AdbError> {
        let Some(fault) = error.fault() else {
            return Err(error);
        };
        let left = self.end.saturating_duration_since(Instant::now());
        let rung = self.ladder.next(fault).filter(|_| !left.is_zero());
        self.failures.count(rung);
        let Some(rung) = rung else {
            return Err(AdbError::GivenUp {
                name: self.name(),
                last: Box::new(error),
            });
        };
        tracing::warn!(phone = self.name(), %error, ?rung, "recovering");
        match timeout(rung.deadline().min(left), self.take(rung)).await {
            Ok(Ok(())) => {}
            // The next attempt tells what that changed.
            Ok(Err(error)) => tracing::warn!(phone = self.name(), %error, ?rung, "in vain"),
            Err(_) => tracing::warn!(phone = self.name(), ?rung, "not in time"),
        }
        Ok(rung == Rung::RestartAgent)
    }

    fn name(&self) -> String {
        self.whereabouts.name()
    }

    fn route(&self) -> &Route {
        self.whereabouts.route()
    }

    async fn take(&self, rung: Rung) -> Result<(), AdbError> {
        match rung {
            // The agent is started anew by the next attempt.
            Rung::Retry | Rung::RestartAgent => sleep(MOMENT).await,
            Rung::Wait => self.wait().await,
            Rung::Reconnect => {
                let transport = self.row().await?.and_then(|row| row.transport);
                if let Some(transport) = transport {
                    self.route().reconnect(transport).await?;
                }
                self.wait().await;
            }
            Rung::ReconnectOffline => {
                self.route().reconnect_offline().await?;
                self.wait().await;
            }
            Rung::Reboot => self.reboot().await?,
            Rung::CyclePort => {
                let usb_path = self.row().await?.and_then(|row| row.usb_path);
                let cycled =
                    usb_port::cycle(Path::new("/sys"), &usb_path.unwrap_or_default()).await;
                match cycled {
                    Ok(()) => self.wait().await,
                    Err(error) => {
                        tracing::warn!(%error, "this hub or this user cannot switch the port")
                    }
                }
            }
            Rung::RestartServer => {
                self.route().restart().await?;
                self.wait().await;
            }
        }
        Ok(())
    }

    async fn row(&self) -> Result<Option<Row>, AdbError> {
        let rows = self.route().phones().await?;
        Ok(self.whereabouts.row(&rows).cloned())
    }

    /// Boots the phone anew: it must go away, and come back as another boot.
    async fn reboot(&self) -> Result<(), AdbError> {
        let phone = self.whereabouts.phone().await?;
        let before = phone.identity().await.ok();
        phone.reboot().await?;
        loop {
            self.wait().await;
            let now = match self.whereabouts.phone().await {
                Ok(phone) => phone.identity().await.ok(),
                Err(_) => None,
            };
            if now.as_ref().is_some_and(|now| before.as_ref() != Some(now)) {
                return Ok(());
            }
            sleep(MOMENT).await;
        }
    }

    /// Waits until the server lists the phone as ready, for as long as it takes: the caller has the
    /// deadline. Ends early when the server does not answer, which is another fault.
    async fn wait(&self) {
        let mut told = None;
        while let Err(error) = self.follow(&mut told).await {
            tracing::debug!(%error, "the list of phones broke off");
            // A server of ours that died is started again; one that hangs is another rung's business.
            let answers = self.route().ensure().await.is_ok();
            sleep(CALL).await;
            if !answers {
                return;
            }
        }
    }

    /// Follows the list until the phone is ready, there or at another address. Tells a person who must do something what.
    async fn follow(&self, told: &mut Option<State>) -> Result<(), AdbError> {
        let mut tracker = self.route().track().await?;
        loop {
            let rows = tokio::select! {
                rows = tracker.next() => rows?,
                never = self.call() => match never {},
            };
            let state = self.whereabouts.row(&rows).map(|row| row.state.clone());
            if state != Some(State::Ready) && self.whereabouts.moved(&rows).await.is_some() {
                return Ok(());
            }
            match &state {
                Some(State::Ready) => return Ok(()),
                Some(state) if told.as_ref() != Some(state) => {
                    tracing::warn!(
                        phone = self.name(),
                        "waiting: {}; {}",
                        state.reason(),
                        state.remedy()
                    );
                }
                None if told.is_none() => {
                    tracing::warn!(phone = self.name(), "waiting for it to be plugged in")
                }
                _ => {}
            }
            *told = state;
        }
    }

    /// Calls a phone at a network address again and again; the server's list says when it has come.
    async fn call(&self) -> Infallible {
        loop {
            if let Some(address) = self.whereabouts.address() {
                let said = self.route().connect(&address).await;
                tracing::trace!(?said, "called the phone");
            }
            sleep(CALL).await;
        }
    }
}
