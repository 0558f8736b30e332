//! How a phone is: its storage, its battery and its heat.

use layerlab_farm::adb::Values;
use layerlab_lab::config::Config;

use super::Finding;

/// Room for the agent, a large model and journals.
const LEAST_STORAGE_BYTES: i64 = 1 << 30;

/// What there is to say of a phone that said so much of itself.
pub(super) fn judge(name: &str, what: &Values, battery: &Values, thermal: &Values) -> Vec<Finding> {
    let free = what.number("storage_free_bytes").map(|free| {
        let said = format!("{} MB of storage free", free / 1_000_000);
        match free >= LEAST_STORAGE_BYTES {
            true => Finding::fine(name, said),
            false => Finding::problem(
                name,
                said,
                format!(
                    "delete something on the phone until {} MB are free",
                    LEAST_STORAGE_BYTES / 1_000_000
                ),
            ),
        }
    });
    // What setup and profile wait for, unless the configuration says otherwise.
    let gates = Config::default().gates.thresholds();
    // What is not as it should be and passes by itself.
    let passing = |good: bool, said: String, remedy: &str| match good {
        true => Finding::fine(name, said),
        false => Finding::passing(name, said, remedy),
    };
    let level = battery.number("level_percent").map(|level| {
        let said = format!("battery at {level} %");
        let least = gates.battery_level_percent;
        passing(
            level >= i64::from(least),
            said,
            &format!("let it charge to {least} %"),
        )
    });
    let heat = battery.number("temperature_millicelsius").map(|heat| {
        let celsius = |millicelsius: i64| format!("{:.1} °C", millicelsius as f64 / 1000.0);
        let said = format!("battery at {}", celsius(heat));
        let most = gates.battery_temperature_millicelsius.as_millicelsius();
        let remedy = format!(
            "let it cool to {}, out of the sun and of its case",
            celsius(most)
        );
        passing(heat <= most, said, &remedy)
    });
    let status = thermal.number("status").map(|status| {
        let word = thermal.text("status_name").unwrap_or("unknown");
        let said = format!("thermal status {status} ({word})");
        passing(status <= 0, said, "let it cool: it throttles")
    });
    [free, level, heat, status].into_iter().flatten().collect()
}
