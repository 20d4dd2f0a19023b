//! The language in which a template or a script is written, determined from its words.

use serde::{Deserialize, Serialize};

use crate::script::legacy_fields::current_spelling;
use crate::source::yaml::{NodeKind, YamlNode};

/// The keys whose values are texts of the author for people and models.
const TEXT_KEYS: [&str; 21] = [
    "content",
    "goal",
    "tone",
    "exit",
    "define",
    "fallback",
    "ask",
    "prompt",
    "strategy",
    "text",
    "min_completeness_requirement",
    "retry_strategy",
    "session_name",
    "phase_name",
    "topic_name",
    "global_goal",
    "phase_goal",
    "topic_goal",
    "form",
    "say_goal",
    "think_goal",
];

/// The language of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptLanguage {
    #[default]
    #[serde(alias = "chinese")]
    Zh,
    #[serde(alias = "english")]
    En,
}

impl PromptLanguage {
    /// The language of a template without `language` in its front matter.
    pub fn of_template(body: &str) -> Self {
        let mut words = WordCounts::default();
        words.add(body);
        words.dominant().unwrap_or_default()
    }

    /// The language of the texts in a script; `None` if there are none.
    pub fn of_script(root: &YamlNode) -> Option<Self> {
        let mut words = WordCounts::default();
        add_texts(root, false, &mut words);
        words.dominant()
    }

    /// The value of a metric that is missing in a reply.
    pub const fn not_available(self) -> &'static str {
        match self {
            Self::Zh => "信息不可用",
            Self::En => "not available",
        }
    }

    /// The value of each metric if the reply could not be read.
    pub const fn not_assessed(self) -> &'static str {
        match self {
            Self::Zh => "LLM输出解析失败,无法评估",
            Self::En => "LLM output could not be parsed, so this was not assessed",
        }
    }

    /// How prompts call the AI if the script does not say.
    pub const fn who(self) -> &'static str {
        match self {
            Self::Zh => "咨询师",
            Self::En => "counsellor",
        }
    }

    /// How prompts call the person if the script does not say.
    pub const fn user(self) -> &'static str {
        match self {
            Self::Zh => "来访者",
            Self::En => "client",
        }
    }
}

/// Adds the texts of the author in `node`; `is_text` if it is the value of one of [`TEXT_KEYS`].
fn add_texts(node: &YamlNode, is_text: bool, words: &mut WordCounts) {
    match &node.kind {
        NodeKind::Scalar(scalar) if is_text => words.add(&scalar.text),
        NodeKind::Scalar(_) => {}
        NodeKind::Sequence(items) => items.iter().for_each(|item| add_texts(item, is_text, words)),
        NodeKind::Mapping(entries) => {
            for entry in entries {
                let key = entry.key.value.as_str();
                let current = current_spelling(key);
                let is_text = TEXT_KEYS.contains(&current.as_deref().unwrap_or(key));
                add_texts(&entry.value, is_text, words);
            }
        }
    }
}

/// The minimum number of words to determine the language. (A Chinese character counts as a word.)
const MIN_WORDS: usize = 40;

/// The minimum if all words use the same writing system: two short sentences, as in a first script.
const MIN_WORDS_OF_ONE_KIND: usize = 8;

/// The maximum percentage of other words in a script.
const MAX_OTHER_PERCENT: usize = 10;

/// The same for templates, which contain the names of reply fields in Latin letters.
const MAX_OTHER_PERCENT_IN_TEMPLATES: usize = 35;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WritingSystem {
    Han,
    Latin,
}

impl WritingSystem {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Han => "Chinese",
            Self::Latin => "Latin letters",
        }
    }
}

/// The numbers of words in texts, by writing system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordCounts {
    han: usize,
    latin: usize,
    others: usize,
}

impl WordCounts {
    /// Counts the words of an author text or a template. Does not count the content of `{{ }}`, `{% %}` and `{# #}`, words
    /// with `_` or digits (names of fields), and words in capitals.
    pub fn add(&mut self, text: &str) {
        let mut rest = text;
        while let Some(open) = rest.find(['{']) {
            let (before, tag) = rest.split_at_checked(open).unwrap_or((rest, ""));
            self.count(before);
            let close = match tag.as_bytes().get(1) {
                Some(b'{') => "}}",
                Some(b'%') => "%}",
                Some(b'#') => "#}",
                _ => {
                    rest = tag.get(1..).unwrap_or_default();
                    continue;
                }
            };
            rest = tag.find(close).and_then(|end| tag.get(end + 2..)).unwrap_or_default();
        }
        self.count(rest);
    }

    fn count(&mut self, text: &str) {
        let (mut word, mut is_name) = (0_usize, false);
        let mut lower = false;
        for c in text.chars().chain([' ']) {
            match c {
                '_' | '0'..='9' => is_name = true,
                'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\'' | '’' => {
                    word += 1;
                    lower |= c.is_lowercase();
                    continue;
                }
                _ => {
                    if word > 0 && !is_name && lower {
                        self.latin += 1;
                    }
                    (word, is_name, lower) = (0, false, false);
                    match c {
                        '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => self.han += 1,
                        c if c.is_alphabetic() => self.others += 1,
                        _ => {}
                    }
                }
            }
        }
    }

    /// The language of most words; `None` without any word. Other scripts count as a foreign language for Chinese prompts.
    fn dominant(self) -> Option<PromptLanguage> {
        let foreign = self.latin + self.others;
        match (self.han, foreign) {
            (0, 0) => None,
            (han, foreign) if han >= foreign => Some(PromptLanguage::Zh),
            _ => Some(PromptLanguage::En),
        }
    }

    /// The main writing system of a script's texts; `None` if they are few or mixed.
    pub fn of_script(self) -> Option<WritingSystem> {
        self.main_system(MAX_OTHER_PERCENT)
    }

    /// The same for templates.
    pub fn of_templates(self) -> Option<WritingSystem> {
        self.main_system(MAX_OTHER_PERCENT_IN_TEMPLATES)
    }

    fn main_system(self, max_other_percent: usize) -> Option<WritingSystem> {
        let all = self.han + self.latin + self.others;
        let minimum = |one: usize| if one == all { MIN_WORDS_OF_ONE_KIND } else { MIN_WORDS };
        let is_main = |one: usize| all >= minimum(one) && (all - one) * 100 <= all * max_other_percent;
        if is_main(self.han) {
            Some(WritingSystem::Han)
        } else if is_main(self.latin) {
            Some(WritingSystem::Latin)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::compose::parse;
    use crate::source::text::SourceFile;
    use std::sync::Arc;

    fn words(text: &str) -> WordCounts {
        let mut words = WordCounts::default();
        words.add(text);
        words
    }

    #[test]
    fn few_words_mixed_words_and_other_scripts_are_ignored() {
        assert_eq!(words("Hello, what is your name?").of_script(), None);
        assert_eq!(words(&"你好，今天怎么样？".repeat(8)).of_script(), Some(WritingSystem::Han));
        assert_eq!(words(&"How are you today, Marta? ".repeat(10)).of_script(), Some(WritingSystem::Latin));
        assert_eq!(words(&"How are you 你好 today? ".repeat(10)).of_script(), None);
        assert_eq!(words(&"お元気ですか。今日はいい天気です。".repeat(10)).of_script(), None);
        assert_eq!(words(&"Как у вас дела сегодня? ".repeat(20)).of_script(), None);
        assert_eq!(
            words(&"{{ the_name_of_it }} {% if nothing %} CBT ABC ai_ask_v1 ".repeat(50)),
            WordCounts::default()
        );
    }

    #[test]
    fn the_language_of_a_script_is_that_of_its_texts() {
        let table = [
            ("session: { session_id: a_b, session_name: Intake }", Some(PromptLanguage::En)),
            (
                "session: { phases: [{ topics: [{ actions: [{ action_type: ai_ask, config: { content: 您好 } }] }] }] }",
                Some(PromptLanguage::Zh),
            ),
            (
                "session: { phases: [{ actions: [{ config: { questionTemplate: Who are you? } }] }] }",
                Some(PromptLanguage::En),
            ),
            (
                "session: { output: [{ get: name, define: 名字 }], x-note: Some English words here }",
                Some(PromptLanguage::Zh),
            ),
            ("session: { session_id: only_ids, condition: a > b }", None),
            ("session: { content: '请介绍 CBT 和 mindfulness' }", Some(PromptLanguage::Zh)),
            ("session: { content: 'Как вас зовут?' }", Some(PromptLanguage::En)),
        ];
        for (script, language) in table {
            let root = parse(&Arc::new(SourceFile::new("s.yaml", script))).root.unwrap();
            assert_eq!(PromptLanguage::of_script(&root), language, "{script}");
        }
        assert_eq!(PromptLanguage::of_template("{{ who }}"), PromptLanguage::Zh);
        assert_eq!(PromptLanguage::of_template("You are {{ who }}."), PromptLanguage::En);
    }

    #[test]
    fn a_few_foreign_words_do_not_make_a_text_mixed() {
        let text = format!("{} CBT 和 mindfulness 练习", "请您说说最近睡得怎么样，有没有担心的事。".repeat(5));
        assert_eq!(words(&text).of_script(), Some(WritingSystem::Han));
    }
}
