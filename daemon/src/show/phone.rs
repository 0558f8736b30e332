//! Which phone was measured, and whether it was fit for that.

use layerlab_farm::adb::Printable;
use layerlab_profiles::document::{Fitness, Header, Phone};

/// A paragraph about the phone; nothing where there was none, or nobody noted it.
pub(super) fn about(header: &Header) -> Option<String> {
    let provenance = &header.provenance;
    let phone = provenance.phone.as_ref().map(sentence);
    let fitness = provenance.fitness.as_ref().and_then(fitness);
    let lines: Vec<String> = [phone, fitness].into_iter().flatten().collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn sentence(phone: &Phone) -> String {
    let maker = [&phone.manufacturer, &phone.model].map(|part| part.as_deref());
    let maker: Vec<&str> = maker.into_iter().flatten().collect();
    let named =
        |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}{value}"));
    let parts = [
        Some(maker.join(" ")).filter(|maker| !maker.is_empty()),
        phone.soc.clone(),
        phone.abi.clone(),
        named("Android ", &phone.android),
        named("patches of ", &phone.security_patch),
        named("build ", &phone.build),
        named("battery health ", &phone.battery_health),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let text = format!("phone {}: {}", phone.serial, parts.join(", "));
    Printable(&text).to_string()
}

fn fitness(fitness: &Fitness) -> Option<String> {
    let said = match (fitness.not_fit.as_slice(), fitness.not_told.as_slice()) {
        ([], []) => return None,
        ([], not_told) => format!("not known when it was measured: {}", not_told.join(", ")),
        (not_fit, _) => format!("NOT FIT to be measured: {}", not_fit.join("; ")),
    };
    Some(Printable(&said).to_string())
}
