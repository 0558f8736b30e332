//! The libraries of runtimes that layerlab knows, by the names of their files.

/// What a library is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// ONNX Runtime itself.
    OnnxRuntime,
    /// Qualcomm's provider for it.
    Plugin,
    /// Qualcomm's backend, which computes on the Hexagon.
    Backend,
    /// What the backend cannot be used without.
    System,
    /// Qualcomm's compiler, where it is apart from the backend.
    Prepare,
    /// What talks to a Hexagon of this version.
    Stub(u16),
    /// What runs on a Hexagon of this version.
    Skel(u16),
}

impl Part {
    /// The part that a file of this name is.
    pub fn of(name: &str) -> Option<Part> {
        let version = |name: &str, end: &str| {
            let digits = name.strip_prefix("libQnnHtpV")?.strip_suffix(end)?;
            digits.parse().ok()
        };
        match name {
            "libonnxruntime_providers_qnn.so" => Some(Part::Plugin),
            "libQnnHtp.so" => Some(Part::Backend),
            "libQnnSystem.so" => Some(Part::System),
            "libQnnHtpPrepare.so" => Some(Part::Prepare),
            _ => {
                let rest = name.strip_prefix("libonnxruntime.so");
                if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
                    return Some(Part::OnnxRuntime);
                }
                let stub = version(name, "Stub.so").map(Part::Stub);
                stub.or_else(|| version(name, "Skel.so").map(Part::Skel))
            }
        }
    }

    /// Whether it is of no use on a phone without a Hexagon.
    pub fn is_of_qualcomm(self) -> bool {
        self != Part::OnnxRuntime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_known_by_its_name_alone() {
        let cases = [
            ("libonnxruntime.so", Some(Part::OnnxRuntime)),
            ("libonnxruntime.so.1.24.4", Some(Part::OnnxRuntime)),
            ("libonnxruntime4j_jni.so", None),
            ("libonnxruntime_providers_shared.so", None),
            ("libonnxruntime_providers_qnn.so", Some(Part::Plugin)),
            ("libQnnHtpV75Skel.so", Some(Part::Skel(75))),
            ("libQnnHtpV75Stub.so", Some(Part::Stub(75))),
            ("libQnnHtpVStub.so", None),
            ("libQnnHtpNetRunExtensions.so", None),
            ("libQnnCpu.so", None),
            ("libHtpPrepare.so", None),
        ];
        for (name, part) in cases {
            assert_eq!(Part::of(name), part, "{name}");
        }
    }
}
