//! The fallback chain of a model.

use crate::config::config::Config;

/// `name`, followed by the models that are called if it fails, in order: each fallback is followed by its own fallbacks. No model
/// is listed twice.
pub fn chain<'a>(config: &'a Config, name: &'a str) -> Vec<&'a str> {
    let mut chain = Vec::new();
    // A stack: fallbacks are pushed in reverse, so that the first one is visited first.
    let mut pending = vec![name];
    while let Some(name) = pending.pop() {
        if !chain.contains(&name) {
            chain.push(name);
            let table = config.models.get(name);
            pending.extend(table.iter().flat_map(|table| table.fallback.iter().rev()).map(String::as_str));
        }
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config::read;

    #[test]
    fn nested_fallbacks_are_one_chain_without_duplicates() {
        let tables = [("a", "b, d, offline"), ("b", "c, d"), ("c", ""), ("d", "c, e"), ("e", "")];
        let text: String = tables
            .iter()
            .map(|(name, fallback)| {
                let names = fallback.split(", ").filter(|name| !name.is_empty()).map(|name| format!("\"{name}\""));
                let names = names.collect::<Vec<_>>().join(",");
                format!("[models.{name}]\nprovider = \"offline\"\nfallback = [{names}]\n")
            })
            .collect();
        let config = read(&text).unwrap();
        for (name, expected) in [
            ("a", vec!["a", "b", "c", "d", "e", "offline"]),
            ("b", vec!["b", "c", "d", "e"]),
            ("c", vec!["c"]),
            ("d", vec!["d", "c", "e"]),
            ("offline", vec!["offline"]),
        ] {
            assert_eq!(chain(&config, name), expected);
        }
    }
}
