//! Which models stand in for which.

use crate::config::config::Config;

/// `name`, and behind it every model that is asked when it gives no reply: each fallback with its own fallbacks behind it, and
/// no model twice.
pub fn chain<'a>(config: &'a Config, name: &'a str) -> Vec<&'a str> {
    let mut chain = Vec::new();
    // From the back, so that the first fallback is looked at first.
    let mut next = vec![name];
    while let Some(name) = next.pop() {
        if !chain.contains(&name) {
            chain.push(name);
            let table = config.models.get(name);
            next.extend(table.iter().flat_map(|table| table.fallback.iter().rev()).map(String::as_str));
        }
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config::read;

    #[test]
    fn chains_of_chains_are_one_chain_without_repeats() {
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
