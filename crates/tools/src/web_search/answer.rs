//! Reads what a search provider answered. Its texts are data: without markup, and with a maximum length.

use std::collections::HashSet;

use bcc_engine::config::tool_tables::SearchProvider;
use serde_json::{Map, Value, json};

/// The maximum lengths of texts, in characters.
const MAX_TITLE: usize = 300;
const MAX_SNIPPET: usize = 2_000;
const MAX_URL: usize = 2_000;
const MAX_PUBLISHED: usize = 40;

/// A result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchResult {
    pub title: String,
    pub url: String,
    pub snippet: String,
    pub published: Option<String>,
}

impl SearchResult {
    fn to_value(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("title".to_owned(), self.title.clone().into());
        fields.insert("url".to_owned(), self.url.clone().into());
        fields.insert("snippet".to_owned(), self.snippet.clone().into());
        if let Some(published) = &self.published {
            fields.insert("published".to_owned(), published.clone().into());
        }
        Value::Object(fields)
    }
}

/// The results in an answer, without repeated addresses and without those that are no web addresses; `None` if it is not an answer of
/// this provider.
pub fn search_results(provider: SearchProvider, answer: &Value, max_results: u32) -> Option<Vec<SearchResult>> {
    let list = match provider {
        SearchProvider::SearXng | SearchProvider::Tavily => answer.get("results")?,
        // Without results, there is no `web`.
        SearchProvider::Brave => match answer.get("web") {
            Some(web) => web.get("results")?,
            None if answer.get("type").is_some() || answer.get("query").is_some() => return Some(vec![]),
            None => return None,
        },
    };
    let snippet = if provider == SearchProvider::Brave { "description" } else { "content" };
    let published = match provider {
        SearchProvider::SearXng => "publishedDate",
        SearchProvider::Brave => "page_age",
        SearchProvider::Tavily => "published_date",
    };
    let mut seen = HashSet::new();
    let read = |one: &Value| {
        let text = |name: &str, max: usize| one.get(name).and_then(Value::as_str).map(|text| plain(text, max));
        let url = one.get("url")?.as_str()?.trim().to_owned();
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        let is_clean = url.chars().count() <= MAX_URL && !url.chars().any(|c| c.is_control() || c.is_whitespace());
        (is_web && is_clean && seen.insert(url.clone())).then(|| SearchResult {
            title: text("title", MAX_TITLE).unwrap_or_default(),
            snippet: text(snippet, MAX_SNIPPET).unwrap_or_default(),
            published: text(published, MAX_PUBLISHED).filter(|published| !published.is_empty()),
            url,
        })
    };
    let max_results = usize::try_from(max_results).unwrap_or(usize::MAX);
    Some(list.as_array()?.iter().filter_map(read).take(max_results).collect())
}

/// The result of the tool.
pub fn search_value(provider: SearchProvider, query: &str, results: &[SearchResult]) -> Value {
    let links: Vec<&str> = results.iter().map(|result| result.url.as_str()).collect();
    let results: Vec<Value> = results.iter().map(SearchResult::to_value).collect();
    json!({ "provider": provider.name(), "query": query, "results": results, "links": links })
}

/// The entities that snippets contain.
const ENTITIES: [(&str, char); 7] =
    [("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("apos", '\''), ("nbsp", ' '), ("hellip", '…')];

/// A text without tags, entities, control characters and repeated spaces, of at most `max` characters.
fn plain(text: &str, max: usize) -> String {
    /// How far the end of a tag is searched, in bytes: `<` may also be a sign of mathematics.
    const MAX_TAG: usize = 200;
    let mut plain = String::new();
    let mut length = 0;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut written = c;
        let mut taken = c.len_utf8();
        if c == '<' && rest.chars().nth(1).is_some_and(|next| next.is_ascii_alphabetic() || next == '/') {
            if let Some(end) = rest.find('>').filter(|end| *end <= MAX_TAG) {
                rest = rest.get(end + 1..).unwrap_or_default();
                continue;
            }
        } else if c == '&'
            && let Some((entity, length)) = entity(rest)
        {
            (written, taken) = (entity, length);
        }
        rest = rest.get(taken..).unwrap_or_default();
        let is_space = written.is_whitespace() || written.is_control();
        if is_space && (plain.is_empty() || plain.ends_with(' ')) {
            continue;
        }
        if length == max {
            break;
        }
        plain.push(if is_space { ' ' } else { written });
        length += 1;
    }
    plain.truncate(plain.trim_end().len());
    plain
}

/// The character of an entity at the start of a text, and the length of the entity.
fn entity(text: &str) -> Option<(char, usize)> {
    const MAX_ENTITY: usize = 10;
    let end = text.bytes().take(MAX_ENTITY).position(|byte| byte == b';')?;
    let name = text.get(1..end)?;
    let number = name.strip_prefix('#').and_then(|number| match number.strip_prefix(['x', 'X']) {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok(),
        None => number.parse().ok(),
    });
    let named = ENTITIES.iter().find(|(known, _)| *known == name).map(|(_, c)| *c);
    Some((number.and_then(char::from_u32).or(named)?, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_all_providers_give_the_same_results() {
        let one = SearchResult {
            title: "T4 & E. coli".into(),
            url: "https://example.org/t4".into(),
            snippet: "The phage binds to LPS.".into(),
            published: Some("2026-01-02".into()),
        };
        let entry = |snippet: &str, published: &str| json!({ "title": "T4 &amp; <em>E. coli</em>", "url": one.url, snippet: "The <b>phage</b> binds\n to LPS. ", published: "2026-01-02" });
        let answers = [
            (SearchProvider::SearXng, json!({ "results": [entry("content", "publishedDate")] })),
            (SearchProvider::Brave, json!({ "web": { "results": [entry("description", "page_age")] } })),
            (SearchProvider::Tavily, json!({ "results": [entry("content", "published_date")] })),
        ];
        for (provider, answer) in answers {
            assert_eq!(search_results(provider, &answer, 5), Some(vec![one.clone()]), "{}", provider.name());
        }
    }

    #[test]
    fn repeated_and_other_addresses_are_left_out_and_the_number_is_bounded() {
        let url = |url: &str| json!({ "title": "t", "url": url });
        let list = [
            url("https://a"),
            url("https://a"),
            url("javascript:alert(1)"),
            url("https://b\nc"),
            json!({ "title": "none" }),
            json!(3),
            url("http://b"),
            url("https://c"),
        ];
        let results = search_results(SearchProvider::SearXng, &json!({ "results": list }), 2).unwrap();
        assert_eq!(results.iter().map(|result| result.url.as_str()).collect::<Vec<_>>(), ["https://a", "http://b"]);
    }

    #[test]
    fn something_else_is_no_answer() {
        for (provider, answer) in [
            (SearchProvider::SearXng, json!({ "error": "x" })),
            (SearchProvider::SearXng, json!({ "results": "x" })),
            (SearchProvider::Brave, json!([])),
            (SearchProvider::Brave, json!({ "web": {} })),
        ] {
            assert_eq!(search_results(provider, &answer, 5), None);
        }
        assert_eq!(search_results(SearchProvider::Brave, &json!({ "type": "search" }), 5), Some(vec![]));
    }

    #[test]
    fn markup_is_removed_and_mathematics_is_kept() {
        for (text, expected) in [
            ("a &lt;b&gt; &#x4e2d;&#25991; &unknown; & c", "a <b> 中文 &unknown; & c"),
            ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
            ("a<br/>b\u{1b}[31m", "ab [31m"),
            ("  a \n\t b  ", "a b"),
            ("<strong", "<strong"),
        ] {
            assert_eq!(plain(text, 100), expected);
        }
        assert_eq!(plain("咨询咨询", 3), "咨询咨");
    }
}
