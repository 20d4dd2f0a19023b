//! Parses a page of `docs/diagnostics/`.
//!
//! A page is `# slug`, one sentence, and the sections Why, Wrong, Right, How to fix, in that order (in the Chinese page those of
//! [`SECTIONS`]). In Wrong and Right each fence without a path starts an example: it is the script. A fence with a path
//! (```` ```json schemas/replies/x.json ````) is another file of the same project; where no script precedes it, it starts an example of
//! templates only, which ends before a path that it has already. Two comments describe what a fence cannot contain:
//!
//! * `<!-- … is 200 × "[" -->`: each `…` of the next fence stands for that many of the JSON string;
//! * `<!-- saved as UTF-16 -->`: the next fence is encoded as UTF-16, with a byte-order mark.

/// The headings of a page in each language, in order.
const SECTIONS: [[&str; 4]; 2] =
    [["Why", "Wrong", "Right", "How to fix"], ["原因", "错误示例", "正确示例", "修改方法"]];

pub(crate) struct Parts {
    pub(crate) slug: String,
    /// The sentence below the title, on one line.
    pub(crate) summary: String,
    /// Examples that raise the diagnostic.
    pub(crate) wrong: Vec<Example>,
    /// The same examples, fixed.
    pub(crate) right: Vec<Example>,
}

/// A script, with the other files of its project.
pub(crate) struct Example {
    /// Paths in the project, with the contents of the files; the script, if there is one, comes first.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

impl Example {
    pub(crate) const SCRIPT: &'static str = "script.yaml";
}

impl Parts {
    /// Parses a page; the error names the missing part.
    pub(crate) fn of(text: &str) -> Result<Self, String> {
        let mut sections: Vec<(&str, String)> = Vec::new();
        let mut fenced = false;
        let mut head = String::new();
        for line in text.lines() {
            fenced ^= line.starts_with("```");
            match line.strip_prefix("## ").filter(|_| !fenced) {
                Some(heading) => sections.push((heading, String::new())),
                None => {
                    let section = sections.last_mut().map_or(&mut head, |(_, section)| section);
                    *section += line;
                    *section += "\n";
                }
            }
        }
        let headings: Vec<&str> = sections.iter().map(|(heading, _)| *heading).collect();
        if fenced || !SECTIONS.iter().any(|sections| headings == sections) {
            return Err(format!("the sections should be {SECTIONS:?}, not {headings:?}"));
        }
        let (title, summary) = head.split_once('\n').unwrap_or((&head, ""));
        let slug = title.strip_prefix("# ").ok_or("the first line should be `# slug`")?.to_owned();
        let summary = summary.trim().replace('\n', " ");
        let sentence = summary.ends_with(['.', '。']) && !summary.contains(". ") && !summary.contains("  ");
        if !sentence {
            return Err(format!("one sentence should stand below the title, not {summary:?}"));
        }
        let section = |index: usize| sections[index].1.trim();
        if section(0).is_empty() || !section(3).starts_with("1. ") {
            return Err("Why should say something, and How to fix should be numbered steps".to_owned());
        }
        Ok(Self { slug, summary, wrong: examples(section(1))?, right: examples(section(2))? })
    }
}

fn examples(section: &str) -> Result<Vec<Example>, String> {
    let mut examples: Vec<Example> = Vec::new();
    let (mut repeated, mut utf16) = (None, false);
    let mut lines = section.lines();
    while let Some(line) = lines.next() {
        if let Some(comment) = line.strip_prefix("<!-- ") {
            let comment = comment.strip_suffix(" -->").ok_or("a comment is not closed in its line")?;
            match comment.strip_prefix("… is ") {
                Some(rule) => repeated = Some(repetition(rule).ok_or_else(|| format!("what is `{rule}`?"))?),
                None if comment == "saved as UTF-16" => utf16 = true,
                None => return Err(format!("what is `{comment}`?")),
            }
        }
        let Some(info) = line.strip_prefix("```") else { continue };
        let mut text = String::new();
        for line in lines.by_ref().take_while(|line| *line != "```") {
            text += line;
            text += "\n";
        }
        if let Some(repetition) = repeated.take() {
            text = text.replace('…', &repetition);
        }
        let bytes = if std::mem::take(&mut utf16) {
            "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
        } else {
            text.into_bytes()
        };
        match info.split_once(' ') {
            None if info == "yaml" => {
                examples.push(Example { files: vec![(Example::SCRIPT.to_owned(), bytes)] });
            }
            None => return Err(format!("a fence should be `yaml` or have a path, not `{info}`")),
            Some((_, path)) => {
                let has = |example: &Example, path: &str| example.files.iter().any(|(other, _)| other == path);
                let is_continuation =
                    examples.last().is_some_and(|example| has(example, Example::SCRIPT) || !has(example, path));
                if !is_continuation {
                    examples.push(Example { files: vec![] });
                }
                examples.last_mut().ok_or("an example was begun")?.files.push((path.to_owned(), bytes));
            }
        }
    }
    Ok(examples)
}

/// Expands `200 × "["`.
fn repetition(rule: &str) -> Option<String> {
    let (times, text) = rule.split_once(" × ")?;
    let text: String = serde_json::from_str(text).ok()?;
    Some(text.repeat(times.parse().ok()?))
}
