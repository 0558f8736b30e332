//! What the dispatcher does about a request, and what it answers.

use tokio::sync::oneshot;

use super::{Dispatcher, Then};
use crate::bench::Bench;
use crate::status::status;
use crate::talk::{Answer, Request};

impl<B: Bench> Dispatcher<B> {
    pub(super) fn answer(
        &mut self,
        request: Request,
        to: oneshot::Sender<Answer>,
        then: &mut Vec<Then>,
    ) {
        let now = self.clock.now();
        let state = &mut self.state;
        let answer = match request {
            Request::Submit { spec, again, .. } => state.submit(*spec, again, now),
            Request::Cancel { job } => state.cancel(job, now),
            Request::Pause { job } => state.pause(job, now),
            Request::Resume { job } => state.resume(job, now),
            Request::Retry { job } => state.retry(job, now),
            Request::Reserve {
                device,
                from,
                until,
                note,
            } => state.reserve(&device, from, until, note, now),
            Request::Release { device } => state.release(&device, now),
            Request::Quarantine {
                phone,
                reason,
                period,
            } => {
                self.quarantine.agree(state);
                state.quarantine(&phone, &reason, period, now)
            }
            Request::Lift { phone } => {
                self.quarantine.agree(state);
                state.lift(&phone, now)
            }
            Request::Quarantined => {
                self.quarantine.agree(state);
                state.quarantined(now)
            }
            Request::Prune { before } => state.prune(before, now),
            Request::Status => {
                self.quarantine.agree(state);
                let trouble = self.store.trouble().borrow().clone();
                // It tells what is; nothing has to be kept for it.
                let _ = to.send(Answer::Status(status(state, trouble, now)));
                return;
            }
        };
        then.push(Then::Answer(to, answer));
    }
}
