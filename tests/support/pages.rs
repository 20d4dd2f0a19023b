//! Parses the documentation pages for tests: their code blocks and links.

use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// The text after the fence.
    pub(crate) language: String,
    pub(crate) text: String,
    /// The line of the fence, from 1.
    pub(crate) line: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) blocks: Vec<Block>,
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(crate::ROOT)
}

impl Page {
    pub(crate) fn of(path: &str) -> Self {
        let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { path: path.to_owned(), blocks: blocks(&text), text }
    }

    pub(crate) fn blocks_in<'p>(&'p self, languages: &'p [&str]) -> impl Iterator<Item = &'p Block> {
        self.blocks.iter().filter(move |block| languages.contains(&block.language.as_str()))
    }

    /// The targets of links outside of code.
    pub(crate) fn links(&self) -> Vec<String> {
        let mut links = Vec::new();
        let mut in_code = false;
        for line in self.text.lines() {
            if line.starts_with("```") {
                in_code = !in_code;
            } else if !in_code {
                let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
                links.extend(targets.map(str::to_owned));
            }
        }
        links
    }

    /// The anchors of the headings, as GitHub makes them.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let headings =
            self.text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
        let anchor = |heading: &str| {
            let letters = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            letters.collect::<String>().to_lowercase().replace(' ', "-")
        };
        headings.map(anchor).collect()
    }
}

/// All documentation pages.
pub(crate) fn all() -> Vec<Page> {
    let mut pages: Vec<Page> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(Page::of).into();
    for folder in ["docs", "docs/actions"] {
        let mut names: Vec<String> = fs::read_dir(root().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
            .map(|path| format!("{folder}/{}", path.file_name().unwrap().to_string_lossy()))
            .collect();
        names.sort();
        pages.extend(names.iter().map(|name| Page::of(name)));
    }
    pages
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut current: Option<(String, Block)> = None;
    for (index, line) in text.lines().enumerate() {
        match current.take() {
            Some((fence, block)) if line.trim_end() == fence => blocks.push(block),
            Some((fence, mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                current = Some((fence, block));
            }
            None if line.starts_with("```") => {
                let fence: String = line.chars().take_while(|c| *c == '`').collect();
                let language = line[fence.len()..].trim().to_owned();
                current = Some((fence, Block { language, text: String::new(), line: index + 1 }));
            }
            None => {}
        }
    }
    assert!(current.is_none(), "a block of code is not closed");
    blocks
}

/// Whether the target of `link` in `page` exists, including its anchor.
pub(crate) fn link_exists(page: &Page, link: &str) -> bool {
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let directory = Path::new(&page.path).parent().unwrap_or(Path::new(""));
    let target = if path.is_empty() { PathBuf::from(&page.path) } else { directory.join(path) };
    if !root().join(&target).exists() {
        return false;
    }
    anchor.is_none_or(|anchor| Page::of(&target.to_string_lossy()).anchors().iter().any(|existing| existing == anchor))
}
