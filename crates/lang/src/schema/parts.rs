//! `schemas/parts/`: what of the language belongs to no kind of action, written once, as definitions that refer to one another.

use serde_json::{Map, Value};

/// The files, compiled in. Each holds `$defs`; no name stands in two of them.
const FILES: [&str; 6] = [
    include_str!("../../../../schemas/parts/scalars.json"),
    include_str!("../../../../schemas/parts/tree.json"),
    include_str!("../../../../schemas/parts/routes.json"),
    include_str!("../../../../schemas/parts/skill.json"),
    include_str!("../../../../schemas/parts/test.json"),
    include_str!("../../../../schemas/parts/documents.json"),
];

/// Every definition, by its name.
pub fn parts() -> Map<String, Value> {
    let mut parts = Map::new();
    for file in FILES {
        // They are compiled in, and a test reads each of them.
        let Ok(Value::Object(mut file)) = serde_json::from_str(file) else { continue };
        if let Some(Value::Object(definitions)) = file.remove("$defs") {
            parts.extend(definitions);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_parts_is_read_and_no_name_stands_in_two() {
        let mut count = 0;
        for file in FILES {
            let file: Value = serde_json::from_str(file).unwrap();
            count += file["$defs"].as_object().unwrap().len();
        }
        assert_eq!(parts().len(), count);
    }
}
