//! Which run of which lab measured a profile.

/// A run of a lab, as the identifiers of its measurements name it: `lab-LAB-RUN-ATTEMPT-PART`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabRun {
    /// The identifier of the lab's store.
    pub lab: String,
    /// The run's number, unique in the whole lab.
    pub run: i64,
}

impl LabRun {
    /// The run that a profile's `provenance.run` names; nothing if no lab measured it.
    pub fn of(identifier: &str) -> Option<LabRun> {
        let mut parts = identifier.strip_prefix("lab-")?.rsplitn(4, '-');
        let (_part, _attempt) = (parts.next()?, parts.next()?);
        let run = parts.next()?.parse().ok()?;
        let lab = parts.next()?.to_owned();
        Some(LabRun { lab, run })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_lab_measured_names_a_run() {
        let of_lab = LabRun::of("lab-0123abcd-17-2-times").expect("a lab's");
        assert_eq!((of_lab.lab.as_str(), of_lab.run), ("0123abcd", 17));
        for other in [
            "",
            "lab-",
            "lab-1-times",
            "lab-x-y-1-times",
            "vocnet-mini-1700000000",
        ] {
            assert_eq!(LabRun::of(other), None, "{other}");
        }
    }
}
