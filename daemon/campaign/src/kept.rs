//! The raw answers of an evaluation, which users judge by metrics of their own.
//!
//! They are kept in memory until they are published, by the agent as well as here, so that there is a limit to them.

use std::collections::BTreeMap;

use layerlab_model::Network;
use layerlab_profiles::accuracy::EvaluationSet;
use layerlab_profiles::{Bytes, Placement};
use layerlab_protocol::{Entry, Event};

use super::Follower;

/// All raw answers together take no more: the agent, which may run on a phone, holds them, and three times as much in its
/// journal.
pub const MOST_KEPT: Bytes = Bytes::from_bytes(64 << 20);

/// So many answers are too large to be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the raw answers would take {} bytes ({answers} answers of {values} numbers under {placements} placements), and {} \
     can be kept; ask for fewer --answers or placements",
    wanted.as_bytes(), MOST_KEPT.as_bytes()
)]
pub struct TooLarge {
    wanted: Bytes,
    answers: u64,
    values: u64,
    placements: u64,
}

/// What so many answers of so many numbers take.
fn needed(values: u64, answers: u64, placements: u64) -> Result<Bytes, TooLarge> {
    let wanted = [values, answers, placements];
    let wanted = Bytes::from_bytes(wanted.into_iter().fold(4, u64::saturating_mul));
    if wanted <= MOST_KEPT {
        return Ok(wanted);
    }
    Err(TooLarge {
        wanted,
        answers,
        values,
        placements,
    })
}

/// What a network answered under each placement.
#[derive(Clone, Debug)]
pub struct KeptAnswers {
    /// The placements, all layers on the CPU first.
    pub placements: Vec<Placement>,
    /// How many numbers an answer has: of a pair those to both images.
    pub values: usize,
    bytes: Bytes,
    /// By the answer's place in the set: the numbers under each placement.
    answers: BTreeMap<u64, Vec<Vec<f32>>>,
}

impl KeptAnswers {
    /// Room for so many answers of `network` to `set`, under `placements` and all layers on the CPU.
    ///
    /// # Errors
    /// When there is not as much.
    pub fn new(
        network: &Network,
        set: &EvaluationSet,
        placements: &[Placement],
        answers: Option<usize>,
    ) -> Result<KeptAnswers, TooLarge> {
        let baseline = Placement::new(vec![0; network.layer_count() as usize]);
        let mut distinct = vec![baseline];
        for one in placements {
            if !distinct.contains(one) {
                distinct.push(one.clone());
            }
        }
        let outputs = network.outputs().iter();
        let each: u64 = outputs.map(|output| output.elements()).sum();
        let values = each.saturating_mul(set.metric.images_per_answer() as u64);
        let answers = answers.unwrap_or(usize::MAX).min(set.answers()) as u64;
        let bytes = needed(values, answers, distinct.len() as u64)?;
        Ok(KeptAnswers {
            placements: distinct,
            values: values as usize,
            bytes,
            answers: BTreeMap::new(),
        })
    }

    /// What all answers will take.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Which answers there are, by their places in the set.
    pub fn answers(&self) -> impl Iterator<Item = u64> {
        self.answers.keys().copied()
    }

    /// The numbers under the placement at this place of the list, of one answer after the other.
    pub fn under(&self, placement: usize) -> impl Iterator<Item = (u64, &[f32])> {
        let answers = self.answers.iter();
        answers.map(move |(&answer, placements)| (answer, placements[placement].as_slice()))
    }

    /// All numbers as a file of NumPy's format, version 1.0: 32-bit floats of placements x answers x values.
    pub fn to_npy(&self) -> Vec<u8> {
        let shape = (self.placements.len(), self.answers.len(), self.values);
        let mut header =
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape:?}, }}");
        // The magic word, the version and the length take ten bytes; the data begin at a multiple of 64.
        let padded = (10 + header.len() + 1).next_multiple_of(64);
        header.extend(std::iter::repeat_n(' ', padded - 10 - header.len() - 1));
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        for placement in 0..self.placements.len() {
            for answer in self.answers.values() {
                let values = answer[placement].iter();
                bytes.extend(values.flat_map(|value| value.to_le_bytes()));
            }
        }
        bytes
    }

    fn put(&mut self, answer: u64, placement: u32, first: u64, bits: &[u32]) {
        let empty = || vec![vec![f32::NAN; self.values]; self.placements.len()];
        let answer = self.answers.entry(answer).or_insert_with(empty);
        let values = answer.get_mut(placement as usize);
        let places = values.and_then(|values| {
            let first = usize::try_from(first).ok()?;
            values.get_mut(first..first.checked_add(bits.len())?)
        });
        // What an agent says beyond what it was asked is nothing that anybody waits for.
        for (value, bits) in places.into_iter().flatten().zip(bits) {
            *value = f32::from_bits(*bits);
        }
    }
}

/// Keeps raw answers, and passes all on to another follower.
pub struct Keeping<'a, F> {
    /// Where they are kept.
    pub kept: &'a mut KeptAnswers,
    /// Who follows as well.
    pub follower: &'a mut F,
}

impl<F: Follower> Follower for Keeping<'_, F> {
    fn planned(&mut self, samples: Option<u64>) {
        self.follower.planned(samples);
    }

    async fn entry(&mut self, entry: &Entry) {
        if let Event::Answered {
            answer,
            placement,
            first,
            value_bits,
        } = &entry.event
        {
            self.kept.put(*answer, *placement, *first, value_bits);
        }
        self.follower.entry(entry).await;
    }

    async fn park_asked(&mut self) {
        self.follower.park_asked().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> KeptAnswers {
        KeptAnswers {
            placements: vec!["00".parse().expect("digits"), "01".parse().expect("digits")],
            values: 3,
            bytes: Bytes::from_bytes(48),
            answers: BTreeMap::new(),
        }
    }

    #[test]
    fn more_than_can_be_kept_is_refused_with_what_it_would_take() {
        let most = MOST_KEPT.as_bytes() / 4;
        assert_eq!(needed(most / 2, 1, 2), Ok(MOST_KEPT));
        let said = needed(705_600, 500, 2).expect_err("too large").to_string();
        assert!(
            said.contains("2822400000 bytes (500 answers of 705600"),
            "{said}"
        );
        assert!(
            said.contains("67108864 can be kept; ask for fewer"),
            "{said}"
        );
        needed(u64::MAX, 2, 2).expect_err("too large");
    }

    #[test]
    fn answers_lie_in_the_file_by_placement_and_by_their_place_in_the_set() {
        let mut kept = kept();
        let bits = |values: &[f32]| {
            values
                .iter()
                .map(|value| value.to_bits())
                .collect::<Vec<_>>()
        };
        for (answer, placement, first, values) in [
            (7, 0, 0, &[1.0, 2.0][..]),
            (7, 0, 2, &[3.0]),
            (7, 1, 0, &[4.0, 5.0, f32::INFINITY]),
            (2, 1, 0, &[9.0, 9.0, 9.0]),
            // Once more, after the agent was killed.
            (2, 1, 0, &[7.0, 8.0, 9.0]),
            (2, 0, 0, &[-1.0, -2.0, -3.0]),
            // Nothing that was asked for.
            (2, 2, 0, &[0.0]),
            (2, 0, 2, &[0.0, 0.0]),
            (2, 0, u64::MAX, &[0.0]),
        ] {
            kept.put(answer, placement, first, &bits(values));
        }
        assert_eq!(kept.answers().collect::<Vec<_>>(), [2, 7]);
        let under: Vec<(u64, &[f32])> = kept.under(1).collect();
        let of_7 = [4.0, 5.0, f32::INFINITY];
        assert_eq!(under, [(2, &[7.0, 8.0, 9.0][..]), (7, &of_7[..])]);
        let file = kept.to_npy();
        let header = concat!(
            "\u{93}NUMPY\u{1}\0\u{76}\0",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2, 3), }"
        );
        let header: Vec<u8> = header.chars().map(|letter| letter as u8).collect();
        assert_eq!(&file[..header.len()], header);
        assert_eq!((file[127], file.len()), (b'\n', 128 + 2 * 2 * 3 * 4));
        let values = file[128..]
            .chunks(4)
            .map(|four| f32::from_le_bytes(four.try_into().expect("four")));
        let expected = [
            -1.0,
            -2.0,
            -3.0,
            1.0,
            2.0,
            3.0,
            7.0,
            8.0,
            9.0,
            4.0,
            5.0,
            f32::INFINITY,
        ];
        assert_eq!(values.collect::<Vec<_>>(), expected);
    }
}
