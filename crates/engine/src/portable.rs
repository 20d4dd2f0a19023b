//! Checks whether file names are portable between systems. Used for scripts, skills, tests and schemes.

/// Names that Windows reserves for devices.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Device names that Windows numbers.
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];

/// Whether Windows reserves this name for a device, with any extension. A project with such a file cannot be copied there.
pub fn is_device(name: &str) -> bool {
    let lower = name.to_lowercase();
    let stem = lower.split('.').next().unwrap_or_default();
    let numbered = |device: &str| {
        let number = stem.strip_prefix(device).map(|number| number.chars().collect::<Vec<_>>());
        number.is_some_and(|number| matches!(number.as_slice(), ['0'..='9' | '¹' | '²' | '³']))
    };
    DEVICES.contains(&stem) || NUMBERED_DEVICES.iter().copied().any(numbered)
}

/// Whether two names differ, but are the same on case-insensitive systems.
pub fn differ_only_in_case(one: &str, other: &str) -> bool {
    one != other && one.to_lowercase() == other.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_are_recognized_with_numbers_and_extensions() {
        for name in ["con", "NUL", "Aux.first", "com1", "LPT9", "com¹", "prn.yaml"] {
            assert!(is_device(name), "{name}");
        }
        for name in ["", "console", "com", "lpt10", "comx", "first.con", "长", "com1_a"] {
            assert!(!is_device(name), "{name}");
        }
    }

    #[test]
    fn names_that_differ_only_in_case_are_recognized() {
        assert!(differ_only_in_case("Intake", "intake") && differ_only_in_case("ÉTÉ", "été"));
        assert!(!differ_only_in_case("intake", "intake") && !differ_only_in_case("intake", "in_take"));
    }
}
