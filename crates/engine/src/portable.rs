//! Names that a project can be copied with to any system: one rule for scripts, skills, tests and schemes.

/// Names that Windows keeps for devices.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Devices that Windows counts.
const NUMBERED: [&str; 2] = ["com", "lpt"];

/// Whether Windows keeps this name for a device, whatever ending follows it: a project with such a file cannot be copied there.
pub fn is_device(name: &str) -> bool {
    let lower = name.to_lowercase();
    let stem = lower.split('.').next().unwrap_or_default();
    let counted = |device: &str| {
        let number = stem.strip_prefix(device).map(|number| number.chars().collect::<Vec<_>>());
        number.is_some_and(|number| matches!(number.as_slice(), ['0'..='9' | '¹' | '²' | '³']))
    };
    DEVICES.contains(&stem) || NUMBERED.iter().copied().any(counted)
}

/// Whether two names are different, and one for systems that do not tell capitals from small letters.
pub fn differ_in_case_alone(one: &str, other: &str) -> bool {
    one != other && one.to_lowercase() == other.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_known_with_numbers_and_endings_and_nothing_else_is_one() {
        for name in ["con", "NUL", "Aux.first", "com1", "LPT9", "com¹", "prn.yaml"] {
            assert!(is_device(name), "{name}");
        }
        for name in ["", "console", "com", "lpt10", "comx", "first.con", "长", "com1_a"] {
            assert!(!is_device(name), "{name}");
        }
    }

    #[test]
    fn names_that_differ_in_case_alone_are_known() {
        assert!(differ_in_case_alone("Intake", "intake") && differ_in_case_alone("ÉTÉ", "été"));
        assert!(!differ_in_case_alone("intake", "intake") && !differ_in_case_alone("intake", "in_take"));
    }
}
