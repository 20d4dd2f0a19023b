//! What each search provider is sent.

use bcc_engine::config::tool_tables::SearchProvider;
use reqwest::Url;
use serde_json::{Value, json};

/// How old a result may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeRange {
    Day,
    Week,
    Month,
    Year,
}

impl TimeRange {
    pub const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Year];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.name() == name)
    }

    /// The name in Brave's API.
    const fn freshness(self) -> &'static str {
        match self {
            Self::Day => "pd",
            Self::Week => "pw",
            Self::Month => "pm",
            Self::Year => "py",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    pub query: String,
    pub max_results: u32,
    /// A language tag such as `zh-CN`.
    pub locale: Option<String>,
    pub time_range: Option<TimeRange>,
}

/// A request to a search provider.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchRequest {
    Get(Url),
    Post(Url, Value),
}

/// The most results that Brave and Tavily give.
const MAX_OF_PROVIDER: u32 = 20;

/// The address below the configured one.
fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

/// The request for a search.
pub fn search_request(provider: SearchProvider, base: &Url, search: &SearchQuery) -> SearchRequest {
    match provider {
        SearchProvider::SearXng => {
            let mut url = below(base, "search");
            let mut pairs = url.query_pairs_mut();
            pairs.append_pair("q", &search.query).append_pair("format", "json");
            if let Some(locale) = &search.locale {
                pairs.append_pair("language", &locale.replace('_', "-"));
            }
            if let Some(range) = search.time_range {
                pairs.append_pair("time_range", range.name());
            }
            drop(pairs);
            SearchRequest::Get(url)
        }
        SearchProvider::Brave => {
            let mut url = below(base, "res/v1/web/search");
            let mut pairs = url.query_pairs_mut();
            pairs.append_pair("q", &search.query);
            pairs.append_pair("count", &search.max_results.min(MAX_OF_PROVIDER).to_string());
            pairs.append_pair("text_decorations", "false");
            if let Some(locale) = &search.locale {
                let (language, country) = brave_locale(locale);
                pairs.append_pair("search_lang", &language);
                if let Some(country) = country {
                    pairs.append_pair("country", &country);
                }
            }
            if let Some(range) = search.time_range {
                pairs.append_pair("freshness", range.freshness());
            }
            drop(pairs);
            SearchRequest::Get(url)
        }
        SearchProvider::Tavily => {
            let mut body = json!({ "query": search.query, "max_results": search.max_results.min(MAX_OF_PROVIDER) });
            if let (Some(range), Some(fields)) = (search.time_range, body.as_object_mut()) {
                fields.insert("time_range".to_owned(), range.name().into());
            }
            // Tavily knows countries by their English names only, and no languages.
            SearchRequest::Post(below(base, "search"), body)
        }
    }
}

/// The language and the country of Brave's API: Chinese is named by its script.
fn brave_locale(locale: &str) -> (String, Option<String>) {
    let parts: Vec<&str> = locale.split(['-', '_']).collect();
    let country = parts.iter().skip(1).find(|part| part.len() == 2).map(|part| part.to_ascii_uppercase());
    let language = parts.first().map(|part| part.to_ascii_lowercase()).unwrap_or_default();
    if language != "zh" {
        return (language, country);
    }
    let is_traditional =
        parts.iter().any(|part| ["hant", "tw", "hk", "mo"].contains(&part.to_ascii_lowercase().as_str()));
    (if is_traditional { "zh-hant" } else { "zh-hans" }.to_owned(), country)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(locale: &str, time_range: Option<TimeRange>) -> SearchQuery {
        let locale = Some(locale.to_owned()).filter(|locale| !locale.is_empty());
        SearchQuery { query: "T4 & 噬菌体".to_owned(), max_results: 30, locale, time_range }
    }

    fn get(provider: SearchProvider, base: &str, search: &SearchQuery) -> String {
        match search_request(provider, &Url::parse(base).unwrap(), search) {
            SearchRequest::Get(url) => url.to_string(),
            SearchRequest::Post(url, body) => format!("{url} {body}"),
        }
    }

    #[test]
    fn each_provider_is_sent_its_own_parameters() {
        let quoted = "T4+%26+%E5%99%AC%E8%8F%8C%E4%BD%93";
        let table = [
            (
                SearchProvider::SearXng,
                "http://h:1/sub/",
                search("", None),
                format!("http://h:1/sub/search?q={quoted}&format=json"),
            ),
            (
                SearchProvider::SearXng,
                "http://h",
                search("zh_CN", Some(TimeRange::Week)),
                format!("http://h/search?q={quoted}&format=json&language=zh-CN&time_range=week"),
            ),
            (
                SearchProvider::Brave,
                "http://h",
                search("zh-TW", Some(TimeRange::Year)),
                format!(
                    "http://h/res/v1/web/search?q={quoted}&count=20&text_decorations=false&search_lang=zh-hant&country=TW&freshness=py"
                ),
            ),
            (
                SearchProvider::Tavily,
                "http://h",
                search("de", Some(TimeRange::Day)),
                "http://h/search {\"query\":\"T4 & 噬菌体\",\"max_results\":20,\"time_range\":\"day\"}".to_owned(),
            ),
        ];
        for (provider, base, search, expected) in table {
            assert_eq!(get(provider, base, &search), expected);
        }
    }

    #[test]
    fn brave_names_chinese_by_its_script() {
        for (locale, expected) in [
            ("en", ("en", None)),
            ("de-AT", ("de", Some("AT"))),
            ("zh", ("zh-hans", None)),
            ("zh-Hans-CN", ("zh-hans", Some("CN"))),
            ("zh-Hant", ("zh-hant", None)),
            ("zh-HK", ("zh-hant", Some("HK"))),
        ] {
            let (language, country) = brave_locale(locale);
            assert_eq!((language.as_str(), country.as_deref()), expected, "{locale}");
        }
    }
}
