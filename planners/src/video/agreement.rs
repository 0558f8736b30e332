//! Does a phone's confidence still say what it said when it was measured? A stream has no labels. Of the frames that it has sent,
//! though, it knows both answers, and how often these are the same at a given confidence was measured beforehand.
//!
//! A betting test (Ville, 1939; Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2023, §4).
//! On every sent frame one bets that both answers are the same more often than at the measured chance q plus what is tolerated, and
//! that they are so less often than at q less that. While neither is so, the bettors become a thousand times as rich at some time in
//! at most one stream of a thousand, however long that is. Bets are of three sizes, and begin anew every
//! fifty frames, so that what changes late is not outweighed by what was right before.

use super::calibration::ScoreMap;
use super::error::{VideoError, refuse_unless_fraction};

/// The stakes, as shares of what the bettor has.
const STAKES: [f64; 6] = [-0.9, -0.5, -0.2, 0.2, 0.5, 0.9];

/// How many times as rich a bettor must become until that is no chance.
pub const ALARM: f64 = 1000.0;

/// How many frames there are from one beginning to the next.
const BEGIN_ANEW_AFTER: u64 = 50;

/// By how much the chance of agreement may differ from the measured one: a choice. A few hundred measured frames tell a share to 7
/// points or so, and a curve of two parameters is off by some points here and there, which a long stream would notice.
pub const TOLERATED_AGREEMENT: f64 = 0.1;

/// Watches whether the phone and the server agree as often as was measured.
#[derive(Clone, Debug)]
pub struct AgreementWatch {
    /// For each resolution, from the phone's confidence to the chance that the server answers the same.
    measured: Vec<ScoreMap>,
    /// What each bettor has of each unit that it began with. The k-th, counted from 0, begins with 1 / ((k + 1) (k + 2)) of everything.
    bettors: Vec<[f64; STAKES.len()]>,
    compared: u64,
    agreed: u64,
    expected: f64,
    alarm: Option<u64>,
}

impl AgreementWatch {
    /// Watches, where `measured` says for each resolution how often both agree at a confidence.
    pub fn new(measured: Vec<ScoreMap>) -> AgreementWatch {
        AgreementWatch {
            measured,
            bettors: Vec::new(),
            compared: 0,
            agreed: 0,
            expected: 0.0,
            alarm: None,
        }
    }

    /// The phone answered a frame with this `confidence`, and the server the same frame in this `resolution`; `agree` says whether
    /// the answers are the same.
    ///
    /// # Errors
    /// When the confidence is none, or the resolution is not among those that were measured.
    pub fn see(
        &mut self,
        confidence: f64,
        resolution: usize,
        agree: bool,
    ) -> Result<(), VideoError> {
        let frame = self.compared as usize;
        refuse_unless_fraction(
            || format!("the confidence of sent frame {frame}"),
            confidence,
        )?;
        let resolutions = self.measured.len();
        let measured = self.measured.get(resolution);
        let chance = measured.ok_or_else(|| VideoError::Resolutions {
            what: format!("sent frame {frame}"),
            found: resolution + 1,
            resolutions,
        })?;
        let chance = chance.probability(confidence);
        if self.compared.is_multiple_of(BEGIN_ANEW_AFTER) {
            self.bettors.push([1.0; STAKES.len()]);
        }
        let most = (chance + TOLERATED_AGREEMENT).min(1.0);
        let least = (chance - TOLERATED_AGREEMENT).max(0.0);
        for bettor in &mut self.bettors {
            for (wealth, stake) in bettor.iter_mut().zip(STAKES) {
                let tolerated = if stake > 0.0 { most } else { least };
                *wealth *= 1.0 + stake * (f64::from(agree) - tolerated);
            }
        }
        self.compared += 1;
        self.agreed += u64::from(agree);
        self.expected += chance;
        if self.alarm.is_none() && self.evidence() >= ALARM {
            self.alarm = Some(self.compared);
        }
        Ok(())
    }

    /// How many times as rich the bettors have become together: 1 at first, and less where all is as measured.
    pub fn evidence(&self) -> f64 {
        let has = |bettor: &[f64; STAKES.len()]| bettor.iter().sum::<f64>() / STAKES.len() as f64;
        let begun = self.bettors.iter().enumerate();
        let begun = begun.map(|(k, bettor)| has(bettor) / ((k + 1) * (k + 2)) as f64);
        // Those that have not begun still have what they were given: the rest of everything.
        begun.sum::<f64>() + 1.0 / (self.bettors.len() + 1) as f64
    }

    /// How many frames both have answered.
    pub fn compared(&self) -> u64 {
        self.compared
    }

    /// On how many of them both agree.
    pub fn agreed(&self) -> u64 {
        self.agreed
    }

    /// On how many of them they would agree on average, by what was measured.
    pub fn expected(&self) -> f64 {
        self.expected
    }

    /// After how many of them the evidence was [`ALARM`] for the first time, if it ever was.
    pub fn alarm(&self) -> Option<u64> {
        self.alarm
    }
}
