//! The smallest exchanges over a link. What they take does not follow from a line through large ones: they come to a server,
//! threads and radios that have rested, where the last bytes of a large one find all of them awake.

use std::collections::BTreeMap;

use super::{Exchange, LinkSample};
use crate::summary::Summary;
use crate::units::Nanos;

/// The smallest exchanges over a link: requests to run layers where they were timed, and else echoes.
#[derive(Clone, Debug, PartialEq)]
pub struct SmallExchanges {
    /// Which they are.
    pub exchange: Exchange,
    /// The connection of each.
    pub connections: Vec<u32>,
    /// How long each took.
    pub durations: Vec<Nanos>,
    /// How long the server computed for each.
    pub computed: Vec<Nanos>,
}

/// The smallest exchanges among `samples`.
pub fn small_exchanges(samples: &[LinkSample]) -> SmallExchanges {
    let requests = SmallExchanges::of(samples, Exchange::Request);
    match requests.durations.is_empty() {
        true => SmallExchanges::of(samples, Exchange::Echo),
        false => requests,
    }
}

impl SmallExchanges {
    /// The exchanges of one kind among `samples`.
    pub fn of(samples: &[LinkSample], exchange: Exchange) -> SmallExchanges {
        let chosen = samples.iter().filter(|it| it.exchange == exchange);
        SmallExchanges {
            exchange,
            connections: chosen.clone().map(|it| it.connection).collect(),
            durations: chosen.clone().map(|it| it.duration).collect(),
            computed: chosen.map(|it| it.server.compute).collect(),
        }
    }

    /// How long one takes: the mean over connections of the median on each, since connections differ by more than exchanges on one
    /// do; nothing where there are none.
    pub fn duration(&self) -> Option<Nanos> {
        self.typical(&self.durations)
    }

    /// How long the server computes for one, by its own clock.
    pub fn computed(&self) -> Option<Nanos> {
        self.typical(&self.computed)
    }

    /// All durations, as if they were of one connection; nothing where there are none.
    pub fn summary(&self) -> Option<Summary> {
        Summary::of(&self.durations)
    }

    fn typical(&self, times: &[Nanos]) -> Option<Nanos> {
        let mut on_each: BTreeMap<u32, Vec<Nanos>> = BTreeMap::new();
        for (&connection, &time) in self.connections.iter().zip(times) {
            on_each.entry(connection).or_default().push(time);
        }
        let medians = on_each.values().filter_map(|times| Summary::of(times));
        let sum: u64 = medians.map(|it| it.median.as_nanos()).sum();
        let count = on_each.len() as u64;
        Some(Nanos::from_nanos((sum + count / 2).checked_div(count)?))
    }
}
