//! What the dispatcher does about a request, and what it answers.

use super::{Dispatcher, Question, Then};
use crate::bench::Bench;
use crate::record::What;
use crate::status::status;
use crate::talk::{Answer, Request};

impl<B: Bench> Dispatcher<B> {
    pub(super) fn answer(&mut self, Question { request, by, to }: Question, then: &mut Vec<Then>) {
        let asked = by.clone().zip(request.command());
        let (job, device) = (request.job(), request.device().map(str::to_owned));
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
                state.quarantine(&phone, &reason, period, by, now)
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
                let _ = to.send(Answer::Status(Box::new(status(state, trouble, now))));
                return;
            }
        };
        if let Some((by, command)) = asked {
            let job = match &answer {
                // Nothing was changed.
                Answer::Refused { .. } | Answer::Known { .. } => {
                    return then.push(Then::Answer(to, answer));
                }
                Answer::Submitted { job, .. } => Some(*job),
                _ => job,
            };
            let command = command.to_owned();
            let device = device.as_deref();
            state.tell(now, job, None, device, What::Asked { by, command });
        }
        then.push(Then::Answer(to, answer));
    }
}
