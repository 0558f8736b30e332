//! The digits of placements that a phone's processors have, and a server's: those of the accuracies that were measured.

use layerlab_profiles::document::{Evaluation, Numerics, Processor, Profile};

use super::{MeasuredSplitError, usable};
use crate::edge::side::Side;
use crate::edge::side_processor::SideProcessor;
use crate::profile::ProfileError;

/// Which processors the digits of placements stand for, and which others compute as digit 0 does: in 32-bit floats.
#[derive(Clone, Debug)]
pub struct PlacedOn {
    /// By digit.
    names: Vec<String>,
    /// The phone's processors that may be used.
    chosen: Vec<String>,
    digits: Vec<u8>,
}

impl PlacedOn {
    /// The digits of the phone's `chosen` processors, and 0 for the server's. Where none of the phone's are chosen, they are all of
    /// the placements whose accuracies were measured: of a CPU and one accelerator, or else of those that were measured first.
    ///
    /// # Errors
    /// A phone of which no accuracies were measured, or none on the chosen processors together; processors of other numerics
    /// than 32-bit floats on the server, or without a digit on the phone.
    pub fn new(
        phone: &Profile,
        server: &Profile,
        chosen: [&[String]; 2],
    ) -> Result<PlacedOn, MeasuredSplitError> {
        let [on_phone, on_server] = chosen;
        let evaluation = evaluation(phone, on_phone)?;
        let names = evaluation.processors(&phone.header).into_iter();
        let names: Vec<String> = names.map(str::to_owned).collect();
        let chosen = match on_phone {
            [] => names.clone(),
            _ => on_phone.to_vec(),
        };
        let refuse = |side, processor: &Processor| {
            Err(MeasuredSplitError::OtherNumerics {
                side,
                processor: processor.name.clone(),
                numerics: in_words(processor.numerics),
                cpu: names[0].clone(),
                option: match side {
                    Side::Phone => "--processors",
                    Side::Server => "--remote-processors",
                },
            })
        };
        let has_other = |one: &&Processor| one.numerics != Numerics::F32;
        let mut of_server = usable(server, Side::Server, on_server)?.into_iter();
        if let Some(processor) = of_server.find(has_other) {
            return refuse(Side::Server, processor);
        }
        let of_phone = &phone.header.processors;
        let reference = of_phone.iter().find(|one| one.name == names[0]);
        if let Some(processor) = reference.filter(has_other) {
            return refuse(Side::Phone, processor);
        }
        let mut digits = vec![0];
        for processor in usable(phone, Side::Phone, &chosen)? {
            match place(&names, &processor.name) {
                Some(digit) => digits.push(digit),
                None if has_other(&processor) => return refuse(Side::Phone, processor),
                None => {}
            }
        }
        digits.sort_unstable();
        digits.dedup();
        Ok(PlacedOn {
            names,
            chosen,
            digits,
        })
    }

    /// The processors of the digits, by their names, the reference CPU first.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The phone's processors that may be used, by their names.
    pub fn chosen(&self) -> &[String] {
        &self.chosen
    }

    /// The digits that layers may have, ascending from 0.
    pub fn digits(&self) -> &[u8] {
        &self.digits
    }

    /// The digit of what runs on the phone's processor of this name.
    pub fn digit_of(&self, name: &str) -> u8 {
        // One without a digit computes in 32-bit floats.
        place(&self.names, name).unwrap_or(0)
    }

    pub(super) fn digit(&self, side: Side, processor: &SideProcessor) -> u8 {
        match side {
            Side::Phone => self.digit_of(processor.name()),
            Side::Server => 0,
        }
    }
}

/// The digit of a processor that has one.
fn place(names: &[String], name: &str) -> Option<u8> {
    let place = names.iter().position(|one| one == name)?;
    u8::try_from(place).ok()
}

/// The measured accuracies of placements on the chosen processors.
fn evaluation<'a>(
    phone: &'a Profile,
    chosen: &[String],
) -> Result<&'a Evaluation, MeasuredSplitError> {
    let all = &phone.evaluations;
    if all.is_empty() {
        return Err(ProfileError::no_combinations(phone).into());
    }
    let found = match chosen {
        [] => {
            let is_pair = |one: &&Evaluation| one.processors(&phone.header).len() == 2;
            all.iter().find(is_pair).or(all.first())
        }
        _ => {
            let chosen = usable(phone, Side::Phone, chosen)?;
            let needed = chosen.iter().filter(|one| one.numerics != Numerics::F32);
            let needed: Vec<&str> = needed.map(|one| one.name.as_str()).collect();
            all.iter().find(|one| {
                let digits = one.processors(&phone.header);
                needed.iter().all(|name| digits.contains(name))
            })
        }
    };
    found.ok_or_else(|| {
        let processors = chosen.join(", ");
        ProfileError::NoneTogether { processors }.into()
    })
}

fn in_words(numerics: Numerics) -> &'static str {
    match numerics {
        Numerics::F32 => "32-bit floats",
        Numerics::F16 => "16-bit floats",
        Numerics::I8 => "8-bit integers",
    }
}
