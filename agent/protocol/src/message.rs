//! Requests of the daemon and responses of the agent.

use serde::{Deserialize, Serialize};

use crate::description::{Device, Processor};
use crate::edge_plan::{EdgeAgreement, EdgeInference, EdgePlan};
use crate::journal::Entry;
use crate::link::{Carried, Exchanged, MeasureLink};
use crate::order::{Order, RunId};
use crate::stream::{FrameStream, StreamedFrame};

/// What the daemon says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The first message of a connection. Answered by [`Response::Hello`].
    Hello {
        /// The version that the daemon speaks.
        protocol: u32,
        /// The secret that the agent was started with: proof that this is the agent's own daemon.
        token: String,
    },
    /// Work for the queue. Answered by [`Response::Accepted`] once the order is in the journal.
    Submit {
        /// The order to work on, unique by its run and number.
        order: Order,
    },
    /// Send the run's journal from the entry after number `after`, and go on as it grows.
    Follow {
        /// The run whose journal is to be sent.
        run: RunId,
        /// The last entry that the daemon has; 0 for none.
        after: u64,
    },
    /// Finish the block in progress and do no more of the run until an order of it is submitted again, which
    /// may be one that it has already. Answered by [`Response::Parked`] when the block is over.
    Park {
        /// The run to leave.
        run: RunId,
    },
    /// Stop working on the run and delete its journal. Answered by [`Response::Forgotten`].
    Forget {
        /// The run whose journal is to be deleted.
        run: RunId,
    },
    /// Measure a link from where the agent is, for as long as this connection lasts. Answered by
    /// [`Response::LinkReached`], and in the end by [`Response::LinkMeasured`] or [`Response::LinkFailed`].
    MeasureLink {
        /// The link to measure.
        link: MeasureLink,
    },
    /// Run a network together with an edge server, for as long as this connection lasts. Answered by
    /// [`Response::LinkReached`], and in the end by [`Response::EdgePlanRan`] or [`Response::LinkFailed`].
    RunEdgePlan {
        /// What runs where.
        plan: EdgePlan,
    },
    /// Answer frames as they come, together with an edge server, for as long as this connection lasts. Answered by
    /// [`Response::LinkReached`], and in the end by [`Response::StreamEnded`] or [`Response::LinkFailed`].
    StreamFrames {
        /// What comes, and what decides.
        stream: FrameStream,
    },
    /// Is the agent there? Answered by [`Response::Pong`].
    Ping,
    /// End the agent after the inference in progress. Unfinished orders go on when it is started again.
    Stop,
}

/// What the agent says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Response {
    /// Who the agent is.
    Hello {
        /// The version that the agent speaks.
        protocol: u32,
        /// The agent's own version.
        agent_version: String,
        /// The device that it runs on.
        device: Device,
        /// The device's operating system.
        system: String,
        /// The processors that can be measured.
        processors: Vec<Processor>,
    },
    /// The order is in the journal and will be worked on.
    Accepted {
        /// The order's run.
        run: RunId,
        /// The order's number.
        order: u32,
    },
    /// One entry of a journal that is being followed.
    Entry {
        /// The run whose journal the entry is of.
        run: RunId,
        /// The entry, as the journal holds it.
        entry: Entry,
    },
    /// Nothing is done of the run any more.
    Parked {
        /// The run that was parked.
        run: RunId,
        /// How many entries its journal has.
        entries: u64,
    },
    /// The run's journal is gone.
    Forgotten {
        /// The run whose journal was deleted.
        run: RunId,
    },
    /// The edge server answers. Measuring, or running, begins, unless the daemon ends the connection.
    LinkReached {
        /// Whether its address is the phone itself, where only a tunnel leads to a server.
        loopback: bool,
    },
    /// A sign of life, once a second while a link is measured, a plan is run or frames are streamed.
    LinkProgress {
        /// How many exchanges, inferences or frames are done.
        done: u64,
        /// How many there are.
        of: u64,
    },
    /// Samples of a link, in their order. None is sent before all is measured: the way to the daemon may be the link.
    LinkSamples {
        /// Those that come after the ones that were sent before.
        samples: Vec<Exchanged>,
    },
    /// Intervals of a link's traces, in their order.
    LinkTraces {
        /// Those that come after the ones that were sent before.
        intervals: Vec<Carried>,
    },
    /// The link is measured, and all that was measured has been sent.
    LinkMeasured {
        /// How many samples were sent.
        samples: u64,
        /// How many intervals of traces were sent.
        intervals: u64,
        /// How many connections to the server were made.
        connections: u32,
        /// What the server calls itself.
        server_program: String,
    },
    /// The link cannot be measured, the plan not be run, or the frames not be streamed.
    LinkFailed {
        /// One sentence for a person, with the remedy.
        message: String,
    },
    /// The plan was run.
    EdgePlanRan {
        /// The inferences, in their order.
        inferences: Vec<EdgeInference>,
        /// How the result compares with the phone's own, where it was compared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agreement: Option<EdgeAgreement>,
        /// Why it was not compared: one sentence for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_compared: Option<String>,
        /// What the server calls itself.
        server_program: String,
    },
    /// Frames of a stream, in their order. None is sent before all have come: the way to the daemon may be the link.
    StreamedFrames {
        /// Those that come after the ones that were sent before.
        frames: Vec<StreamedFrame>,
    },
    /// The stream is over, and all its frames have been sent.
    StreamEnded {
        /// How many frames were sent.
        frames: u64,
        /// On how many of them a simulated device was slower than what it simulates.
        slower: u64,
        /// Why the server was lost before the end: one sentence for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<String>,
        /// What the server calls itself.
        server_program: String,
    },
    /// The agent is there.
    Pong,
    /// The last request was not done.
    Refused {
        /// What is wrong with it.
        refusal: Refusal,
        /// One sentence for a person.
        message: String,
    },
}

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The agent speaks another version of the protocol.
    Version,
    /// The token is not the one that the agent was started with.
    Token,
    /// The line is no request.
    Malformed,
    /// A file of the order, its model or its evaluation set, must be pushed first, or again.
    UnknownModel,
    /// The run has another order of the same number.
    Conflict,
    /// The phone cannot store the order.
    Storage,
    /// The agent works on something that measuring a link, or running a plan, would disturb, or would be disturbed by.
    Busy,
}
