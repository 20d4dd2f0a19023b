//! Recognizes a text that is meant as a list: `好，一般，差` without brackets.

/// Names or values that are separated by commas of any kind, as a list in brackets.
pub(crate) fn inline_list(text: &str) -> Option<String> {
    const MAX_ITEM_CHARS: usize = 20;
    let items: Vec<&str> = text.split([',', '，', '、']).map(str::trim).collect();
    let is_item = |item: &&str| {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        item.chars().next().is_some_and(char::is_alphanumeric)
            && item.chars().all(is_word)
            && item.chars().count() <= MAX_ITEM_CHARS
    };
    (items.len() > 1 && items.iter().all(is_item)).then(|| format!("[{}]", items.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_words_between_commas_are_a_list() {
        for (text, list) in [
            ("好，一般，差", Some("[好, 一般, 差]")),
            ("name, age", Some("[name, age]")),
            ("姓名、年龄", Some("[姓名, 年龄]")),
            ("好", None),
            ("好，", None),
            ("a: 1, b: 2", None),
            ("您好，请问您今天感觉怎么样？", None),
        ] {
            assert_eq!(inline_list(text).as_deref(), list, "{text}");
        }
    }
}
