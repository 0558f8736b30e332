//! Whatever is asked of the lab, by commands or over the web, comes through here to the dispatcher.

use tokio::sync::{mpsc, oneshot};

use crate::dispatcher::{Message, Question};
use crate::intake::Intake;
use crate::talk::{Answer, RefusalCode, Request};

/// Takes requests in, with what they bring, and has them answered.
#[derive(Clone, Debug)]
pub struct FrontDesk {
    intake: Intake,
    messages: mpsc::Sender<Message>,
}

impl FrontDesk {
    /// A desk before the dispatcher that hears `messages`.
    pub fn new(intake: Intake, messages: mpsc::Sender<Message>) -> FrontDesk {
        FrontDesk { intake, messages }
    }

    /// What the lab answers. `by` says who asks over the web, and goes into the event log with what was changed.
    pub async fn ask(&self, request: Request, by: Option<String>) -> Answer {
        if let Err(refused) = self.intake.take_in(&request).await {
            return refused;
        }
        let (to, answer) = oneshot::channel();
        let question = Question { request, by, to };
        // A question that cannot be sent is dropped, and so is where its answer would go.
        let _ = self.messages.send(Message::Ask(question)).await;
        answer.await.unwrap_or_else(|_| Answer::Refused {
            code: RefusalCode::Ending,
            message: "the daemon is ending; ask again when it runs".to_owned(),
        })
    }
}
