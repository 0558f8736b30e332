//! The SoCs whose Hexagon tensor processor can be measured or emulated.

use std::str::FromStr;

use layerlab_protocol::Numerics;

use super::OnnxRuntimeError;

/// A Qualcomm SoC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Soc {
    /// Its name, as Android's property `ro.soc.model` gives it.
    pub(super) name: &'static str,
    /// The number that Qualcomm's libraries have for it, which is not the one in its name.
    pub(super) qnn_model: u32,
}

/// The SoCs, oldest first. The first one's Hexagon computes 32-bit networks in 32 bits, the others' in 16.
const SOCS: [Soc; 6] = [
    soc("SM8350", 30),
    soc("SM8450", 36),
    soc("SM8550", 43),
    soc("SM8650", 57),
    soc("SM8750", 69),
    soc("SM8850", 87),
];

const fn soc(name: &'static str, qnn_model: u32) -> Soc {
    Soc { name, qnn_model }
}

impl Soc {
    /// What its Hexagon computes 32-bit networks in.
    pub(super) fn float_numerics(&self) -> Numerics {
        match self.qnn_model {
            30 => Numerics::F32,
            _ => Numerics::F16,
        }
    }
}

impl FromStr for Soc {
    type Err = OnnxRuntimeError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let is_it = |soc: &Soc| soc.name.eq_ignore_ascii_case(name.trim());
        SOCS.into_iter()
            .find(is_it)
            .ok_or_else(|| OnnxRuntimeError::UnknownSoc {
                soc: name.trim().to_owned(),
                known: SOCS.map(|soc| soc.name).join(", "),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_soc_is_known_by_its_name_and_another_is_refused_with_the_list() {
        let soc: Soc = "sm8550".parse().expect("it is known");
        assert_eq!((soc.name, soc.qnn_model), ("SM8550", 43));
        for unknown in ["", "SM8551", "43"] {
            let sentence = unknown.parse::<Soc>().expect_err("unknown").to_string();
            assert_eq!(
                sentence,
                format!(
                    "the Hexagon of SoC `{unknown}` is not known to layerlab: choose one of SM8350, SM8450, SM8550, \
                     SM8650, SM8750, SM8850"
                )
            );
        }
    }
}
