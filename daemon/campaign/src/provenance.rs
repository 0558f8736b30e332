//! Where a profile's numbers come from: host, device, versions and times.

use layerlab_profiles::document::{Program, Provenance};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::KnownJournal;
use layerlab_farm::{Hello, Link};

/// The program that speaks the agent's protocol on devices.
const AGENT: &str = "layerlab-agent";

/// This program.
pub fn this_program() -> Program {
    Program {
        name: "layerlab".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Where what came of the journal's run just now comes from.
pub(super) fn provenance(link: &impl Link, journal: &KnownJournal, agent: Hello) -> Provenance {
    Provenance {
        started_at: rfc3339(journal.started),
        finished_at: rfc3339(OffsetDateTime::now_utc()),
        host_program: this_program(),
        device_program: Program {
            name: AGENT.to_owned(),
            version: agent.agent_version,
        },
        run: journal.id.to_string(),
        link: link.kind().to_owned(),
        device_system: agent.system,
        host: crate::host::host(),
        phone: link.described(),
        fitness: None,
    }
}

/// `instant` to the second, as provenance says it.
pub fn rfc3339(instant: OffsetDateTime) -> String {
    let whole_seconds = instant.replace_nanosecond(0).unwrap_or(instant);
    whole_seconds
        .format(&Rfc3339)
        .expect("years of the clock have four digits")
}
