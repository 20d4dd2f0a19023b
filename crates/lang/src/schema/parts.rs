//! `schemas/parts/`: definitions of the parts of the language that belong to no kind of action. They can refer to each other.

use serde_json::{Map, Value};

/// The embedded files. Each has `$defs`; no name occurs in two of them.
const FILES: [&str; 7] = [
    include_str!("../../../../schemas/parts/scalars.json"),
    include_str!("../../../../schemas/parts/tree.json"),
    include_str!("../../../../schemas/parts/routes.json"),
    include_str!("../../../../schemas/parts/skill.json"),
    include_str!("../../../../schemas/parts/test.json"),
    include_str!("../../../../schemas/parts/workflow.json"),
    include_str!("../../../../schemas/parts/documents.json"),
];

/// All definitions by name.
pub fn parts() -> Map<String, Value> {
    let mut parts = Map::new();
    for file in FILES {
        // The files are embedded, and a test parses each of them.
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
    fn every_file_is_parsed_and_no_name_occurs_in_two() {
        let mut count = 0;
        for file in FILES {
            let file: Value = serde_json::from_str(file).unwrap();
            count += file["$defs"].as_object().unwrap().len();
        }
        assert_eq!(parts().len(), count);
    }
}
