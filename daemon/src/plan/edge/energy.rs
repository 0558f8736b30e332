//! The phone's energy in a plan: what its radio draws, and how energies are written.

use anyhow::anyhow;
use layerlab_planners::edge::{Energy, MeasuredNetwork, PaperLink, Side, SplitPlan};
use serde_json::{Value, json};

use super::{Minimise, OneArgs};
use crate::exit::{Code, Failure};

/// A radio whose power is known: α t + β of jointdnn Table 3, with t what the measured link carries.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Radio {
    #[value(name = "3g")]
    ThreeG,
    #[value(name = "4g")]
    FourG,
    Wifi,
}

impl Radio {
    /// The column of the table.
    pub(super) fn paper(self) -> PaperLink {
        match self {
            Radio::ThreeG => PaperLink::ThreeG,
            Radio::FourG => PaperLink::FourG,
            Radio::Wifi => PaperLink::WiFi,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Radio::ThreeG => "3g",
            Radio::FourG => "4g",
            Radio::Wifi => "wifi",
        }
    }
}

/// An energy as users write it: `500mJ`.
pub(super) fn energy(text: &str) -> Result<Energy, String> {
    let wrong = || format!("`{text}` is no energy: write a number and J, mJ or uJ, such as 500mJ");
    let units = [("mJ", 1e6), ("uJ", 1e3), ("µJ", 1e3), ("J", 1e9)];
    let mut written = units.into_iter();
    let (number, scale) = written
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))
        .ok_or_else(wrong)?;
    let number: f64 = number.trim_end().parse().map_err(|_| wrong())?;
    let nanojoules = number * scale;
    // Beyond that a phone's battery is empty many times over; a NaN is no energy either.
    match (0.0..=1e18).contains(&nanojoules) {
        true => Ok(Energy::from_nanojoules(nanojoules.round() as u64)),
        false => Err(wrong()),
    }
}

/// The radio to plan with, where energy is planned with.
pub(super) fn radio(args: &OneArgs) -> Result<Option<Radio>, Failure> {
    let is_asked = args.minimise == Minimise::PhoneEnergy || args.energy.is_some();
    if is_asked && args.radio.is_none() {
        let error = anyhow!(
            "energy needs the power of the phone's radio: name one by --radio (3g, 4g or wifi)"
        );
        return Err(Failure::new(Code::Usage, error));
    }
    Ok(args.radio)
}

/// Where a plan's energy goes.
pub(super) struct DrawnByPlan {
    radio: Radio,
    computing: Energy,
    all: Energy,
    /// What the most frugal split of each baseline draws, without limits; nothing where there is none.
    baselines: Vec<(String, Option<Energy>)>,
}

impl DrawnByPlan {
    pub(super) fn of(
        plan: &SplitPlan,
        network: &MeasuredNetwork,
        radio: Radio,
        baselines: Vec<(String, Option<Energy>)>,
    ) -> DrawnByPlan {
        let on_phone = plan.groups().iter().filter(|it| it.side == Side::Phone);
        let drawn = on_phone.filter_map(|placed| {
            let mut groups = network.network().groups().iter();
            let group = groups.find(|it| it.segment == placed.segment)?;
            Some(group.phone?.energy)
        });
        DrawnByPlan {
            radio,
            computing: drawn.fold(Energy::ZERO, |sum, it| sum + it),
            all: plan.cost().energy,
            baselines,
        }
    }

    /// What the phone draws while it does not compute: an idle phone draws nothing above itself.
    fn sending(&self) -> Energy {
        let nanojoules = self.all.as_nanojoules();
        Energy::from_nanojoules(nanojoules.saturating_sub(self.computing.as_nanojoules()))
    }

    pub(super) fn text(&self) -> String {
        let baselines = self.baselines.iter().map(|(name, least)| match least {
            Some(least) => format!("{name} {least}"),
            None => format!("{name} impossible"),
        });
        format!(
            "The phone draws {} above an idle one: computing {}, its {} radio {} (powers of jointdnn Table 3)\nThe least that it \
             could draw: {}",
            self.all,
            self.computing,
            self.radio.name(),
            self.sending(),
            baselines.collect::<Vec<_>>().join(", ")
        )
    }

    /// Adds what is drawn to what is told of a plan.
    pub(super) fn add_to(&self, told: &mut Value) {
        let baselines: serde_json::Map<String, Value> = self
            .baselines
            .iter()
            .map(|(name, least)| (name.clone(), json!(least.map(Energy::as_nanojoules))))
            .collect();
        told["radio"] = json!(self.radio.name());
        told["energy_nj"] = json!(self.all.as_nanojoules());
        told["computing_nj"] = json!(self.computing.as_nanojoules());
        told["radio_nj"] = json!(self.sending().as_nanojoules());
        told["baselines_energy_nj"] = json!(baselines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energies_are_numbers_with_a_unit() {
        let found = ["500mJ", "1.5 J", "20uJ", "20µJ", "0J"].map(energy);
        let nanojoules = [500_000_000, 1_500_000_000, 20_000, 20_000, 0];
        assert_eq!(found, nanojoules.map(|it| Ok(Energy::from_nanojoules(it))));
        for wrong in ["500", "mJ", "-1J", "NaNJ", "1kJ", "infJ", "1e12J"] {
            assert!(energy(wrong).is_err(), "{wrong}");
        }
    }
}
