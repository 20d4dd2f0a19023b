//! The tree of a file's parts, each with its state, its count and a link to its line.

use crate::test_runner::coverage::coverage::Covered;
use crate::test_runner::coverage::html::escape::escaped;
use crate::test_runner::coverage::html::page::grade;
use crate::test_runner::coverage::item::{CoverageItem, ItemKind};
use crate::test_runner::coverage::table::times;

/// The parts of a file as nested lists; phases, topics and skills can be folded.
pub(super) fn tree(covered: &Covered, number: usize) -> String {
    let mut list = String::new();
    nested(covered, &covered.outline.items, number, &mut list);
    list
}

fn nested(covered: &Covered, items: &[CoverageItem], number: usize, list: &mut String) {
    list.push_str("<ul>\n");
    for item in items {
        list.push_str(if covered.tally(item).ran > 0 { "<li class=\"ran\">" } else { "<li class=\"missed\">" });
        let is_foldable =
            matches!(item.key.what(), ItemKind::Phase | ItemKind::Topic | ItemKind::Skill) && !item.children.is_empty();
        if is_foldable {
            let contents = covered.figure_of(item.all().into_iter().skip(1));
            let figure =
                format!("<span class=\"inside {}\">{}/{}</span>", grade(contents), contents.covered, contents.total);
            list.push_str(&format!("<details open><summary>{}{figure}</summary>\n", line(covered, item, number)));
        } else {
            list.push_str(&line(covered, item, number));
        }
        list.push_str(&endings(covered, item));
        if !item.children.is_empty() {
            nested(covered, &item.children, number, list);
        }
        list.push_str(if is_foldable { "</details></li>\n" } else { "</li>\n" });
    }
    list.push_str("</ul>\n");
}

fn line(covered: &Covered, item: &CoverageItem, number: usize) -> String {
    let tally = covered.tally(item);
    let (mark, status) = if tally.ran > 0 { ("✓", "ran") } else { ("✗", "never ran") };
    // The body of a `for_each` has no id of its own.
    let (what, id) = match item.key.what() {
        ItemKind::ForEach => (String::new(), "for_each"),
        what => (format!("<span class=\"what\">{}</span> ", what.name()), item.key.id()),
    };
    let mut line = format!(
        "<span class=\"mark\" role=\"img\" aria-label=\"{status}\">{mark}</span>{what}<a href=\"#f{number}-{}\">{}</a>",
        item.line,
        escaped(id)
    );
    if let Some(description) = &item.description {
        line += &format!(" <span class=\"about\">{}</span>", escaped(description));
    }
    if tally.ran > 0 {
        line += &format!(" <span class=\"times\" title=\"ran {}\">{}×</span>", times(tally.ran), tally.ran);
    }
    if tally.skipped > 0 {
        line += &format!(" <span class=\"skipped\">passed over {}</span>", times(tally.skipped));
    }
    line
}

/// The exit reasons of an action, whether they occurred or not.
fn endings(covered: &Covered, item: &CoverageItem) -> String {
    let id = item.key.id();
    let own = item.exits.iter().map(|reason| (*reason, covered.exits(id, reason)));
    // Nothing to show for an action with a single exit reason, unless another one occurred.
    let others = covered.counts.exits.iter().filter(|((action, reason), _)| {
        item.key.what() == ItemKind::Action && action == id && !item.exits.contains(&reason.as_str())
    });
    let others: Vec<(&str, u64)> = others.map(|((_, reason), times_met)| (reason.as_str(), *times_met)).collect();
    if (item.exits.len() < 2 && others.is_empty()) || covered.tally(item).ran == 0 {
        return String::new();
    }
    let mut list = String::from("<p class=\"endings\">");
    for (reason, times_met) in own.chain(others) {
        list += &match times_met {
            0 => format!("<span class=\"unmet\" title=\"it never ended so\">{}</span> ", escaped(reason)),
            _ => format!(
                "<span class=\"met\" title=\"it ended so {}\">{} {times_met}×</span> ",
                times(times_met),
                escaped(reason)
            ),
        };
    }
    list + "</p>\n"
}
