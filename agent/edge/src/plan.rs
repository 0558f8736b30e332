//! What is measured of a link: which exchanges there are, and their order.

use std::time::Duration;

use layerlab_profiles::Bytes;
use layerlab_profiles::link::{Exchange, LinkDirection, LinkMethod, RequestMethod};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use crate::infer::{InferRequest, TensorShape, payload_bytes};
use crate::message::ECHO_BYTES;

/// What is to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasurePlan {
    /// The sizes of the transfers, each way, in bytes.
    pub sizes: Vec<u64>,
    /// How many transfers of each size, each way.
    pub repeats: u32,
    /// How many echoes.
    pub echoes: u32,
    /// How many connections share all exchanges evenly.
    pub connections: u32,
    /// The rest before each exchange: what has rested longer is slower to answer, a radio above all.
    pub gap: Duration,
    /// What the order of the exchanges on each connection is drawn from.
    pub seed: u64,
    /// How long a trace is recorded each way, if one is.
    pub trace: Option<Duration>,
    /// How often a lost connection is made again.
    pub reconnections: u32,
    /// The requests to run layers that are timed, too, if any are.
    pub requests: Option<TimedRequests>,
}

/// Requests to run layers on tensors of zeros, all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedRequests {
    /// How many.
    pub count: u32,
    /// The model's name.
    pub model: String,
    /// What the server runs, on one processor.
    pub asked: InferRequest,
    /// The tensors that come back.
    pub expected: Vec<TensorShape>,
}

impl TimedRequests {
    pub(crate) fn request_bytes(&self) -> u64 {
        self.asked.payload_bytes().unwrap_or(0)
    }

    /// What a document says of them.
    pub fn method(&self) -> RequestMethod {
        let processors = self.asked.stretches.iter().map(|it| it.processor.as_str());
        let model_sha256 = self.asked.model.iter();
        RequestMethod {
            count: self.count,
            model: self.model.clone(),
            model_sha256: model_sha256.map(|byte| format!("{byte:02x}")).collect(),
            first_layer: self.asked.first,
            last_layer: self.asked.last(),
            processor: processors.collect(),
            request_bytes: Bytes::from_bytes(self.request_bytes()),
            answer_bytes: Bytes::from_bytes(payload_bytes(&self.expected).unwrap_or(0)),
        }
    }
}

impl Default for MeasurePlan {
    fn default() -> MeasurePlan {
        MeasurePlan {
            sizes: vec![16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20],
            repeats: 10,
            echoes: 200,
            connections: 5,
            gap: Duration::ZERO,
            seed: 0,
            trace: None,
            // A link that is lost more often than once in ten seconds is no link to plan with.
            reconnections: 10,
            requests: None,
        }
    }
}

/// An exchange that is to be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planned<'a> {
    Echo,
    Transfer(LinkDirection, u64),
    Request(&'a TimedRequests),
}

impl Planned<'_> {
    pub(crate) fn exchange(self) -> Exchange {
        match self {
            Planned::Echo => Exchange::Echo,
            Planned::Transfer(direction, _) => direction.into(),
            Planned::Request(_) => Exchange::Request,
        }
    }

    /// What a sample says of its size.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Planned::Echo => ECHO_BYTES,
            Planned::Transfer(_, bytes) => bytes,
            Planned::Request(requests) => requests.request_bytes(),
        }
    }
}

impl MeasurePlan {
    /// What a document says of it.
    pub fn method(&self) -> LinkMethod {
        LinkMethod {
            transfer_bytes: self.sizes.iter().map(|&it| Bytes::from_bytes(it)).collect(),
            repeats: self.repeats,
            echoes: self.echoes,
            echo_bytes: Bytes::from_bytes(ECHO_BYTES),
            connections: self.connections,
            gap_ns: self.gap.into(),
            seed: self.seed,
            requests: self.requests.as_ref().map(TimedRequests::method),
        }
    }

    /// The exchanges of each connection in their random order.
    pub(crate) fn exchanges<'a>(&'a self) -> Vec<Vec<Planned<'a>>> {
        let mut shares = vec![Vec::new(); self.connections.max(1) as usize];
        let mut share_out = |one: Planned<'a>, count: u32| {
            let connections = shares.len();
            for place in 0..count as usize {
                shares[place % connections].push(one);
            }
        };
        share_out(Planned::Echo, self.echoes);
        if let Some(requests) = &self.requests {
            share_out(Planned::Request(requests), requests.count);
        }
        for direction in LinkDirection::ALL {
            for &size in &self.sizes {
                share_out(Planned::Transfer(direction, size), self.repeats);
            }
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        for share in &mut shares {
            share.shuffle(&mut rng);
        }
        shares
    }

    /// The size of transfers that are not counted, of those that are timed the middle one.
    pub(crate) fn warming_bytes(&self) -> u64 {
        let mut sizes = self.sizes.clone();
        sizes.sort_unstable();
        sizes.get(sizes.len() / 2).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::Stretch;

    #[test]
    fn exchanges_are_those_of_the_plan_in_an_order_of_the_seed() {
        let plan = MeasurePlan::default();
        let all = plan.exchanges();
        assert_eq!(all.len(), 5);
        assert_eq!(all, plan.exchanges());
        let other = MeasurePlan {
            seed: 1,
            ..MeasurePlan::default()
        };
        assert_ne!(all, other.exchanges());
        let sorted = |share: Vec<Planned<'_>>| {
            let kinds = share.into_iter().map(|it| (it.exchange(), it.bytes()));
            let mut kinds: Vec<(Exchange, u64)> = kinds.collect();
            kinds.sort_unstable();
            kinds
        };
        let first = sorted(all[0].clone());
        assert_eq!(first.len(), 40 + 2 * 5 * 2);
        for share in all.into_iter().chain(other.exchanges()) {
            assert_eq!(sorted(share), first);
        }
    }

    #[test]
    fn requests_are_shared_out_and_described_as_they_are_asked() {
        let requests = TimedRequests {
            count: 7,
            model: "alexnet".to_owned(),
            asked: InferRequest {
                model: [0xab; 32],
                first: 10,
                stretches: vec![Stretch {
                    last: 11,
                    processor: "cpu:all".to_owned(),
                }],
                tensors: vec![TensorShape(vec![1, 128])],
            },
            expected: vec![TensorShape(vec![1, 20])],
        };
        let plan = MeasurePlan {
            requests: Some(requests),
            ..MeasurePlan::default()
        };
        let shares = plan.exchanges();
        let counts = shares.iter().map(|share| {
            let requests = share.iter().filter(|it| it.exchange() == Exchange::Request);
            requests.map(|it| it.bytes()).collect::<Vec<u64>>()
        });
        let counts: Vec<Vec<u64>> = counts.collect();
        let lengths: Vec<usize> = counts.iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 2, 1, 1, 1]);
        assert!(counts.iter().flatten().all(|&bytes| bytes == 4 * 128));
        let method = plan.method().requests.expect("they are timed");
        assert_eq!(method.model_sha256, "ab".repeat(32));
        assert_eq!((method.first_layer, method.last_layer), (10, 11));
        assert_eq!(method.processor, "cpu:all");
        let bytes = [method.request_bytes, method.answer_bytes];
        assert_eq!(bytes.map(Bytes::as_bytes), [512, 80]);
    }

    #[test]
    fn what_cannot_be_shared_evenly_is_shared_as_evenly_as_can_be() {
        let plan = MeasurePlan {
            sizes: vec![8, 16],
            repeats: 3,
            echoes: 5,
            connections: 2,
            ..MeasurePlan::default()
        };
        let lengths: Vec<usize> = plan.exchanges().iter().map(Vec::len).collect();
        assert_eq!(lengths, [3 + 2 * 2 * 2, 2 + 2 * 2]);
    }
}
