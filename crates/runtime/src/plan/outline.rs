//! A plan as text: an outline for prompts and for `show_tasks`, with a maximum length.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::plan::task::TaskId;
use crate::plan::tree::PlanTree;

/// The characters that are kept for a line that says how many tasks are left out, without its indentation.
const LEFT_OUT_CHARS: usize = 18;

impl PlanTree {
    /// The tasks as a nested list, with their ids and statuses, in at most `max_chars` characters: `- [17] Data (pending)`. What
    /// does not fit is left out, the lowest levels first, and counted.
    pub fn outline(&self, max_chars: usize) -> String {
        self.outline_of(None, max_chars)
    }

    /// Like [`PlanTree::outline`], of one task and what is in it.
    pub fn outline_of(&self, root: Option<TaskId>, max_chars: usize) -> String {
        let mut text = String::new();
        let shown = self.shown(root, max_chars);
        // Each entry is a task, or the tasks of a parent that are left out, with its depth.
        let mut stack: Vec<(OutlineEntry, usize)> = Vec::new();
        match root {
            Some(id) => stack.push((OutlineEntry::Task(id), 0)),
            None => self.push_children(None, 0, &shown, &mut stack),
        }
        while let Some((entry, depth)) = stack.pop() {
            let indent = "  ".repeat(depth);
            match entry {
                OutlineEntry::LeftOut(count) => _ = writeln!(text, "{indent}- … {count} more"),
                OutlineEntry::Task(id) => {
                    if let Some(line) = self.outline_line(id) {
                        _ = writeln!(text, "{indent}{line}");
                    }
                    self.push_children(Some(id), depth.saturating_add(1), &shown, &mut stack);
                }
            }
        }
        text
    }

    fn outline_line(&self, id: TaskId) -> Option<String> {
        let task = self.task(id)?;
        let mut line = format!("- [{id}] {} ({}", task.name, task.status.name());
        if !task.dependencies.is_empty() {
            let ids: Vec<String> = task.dependencies.iter().map(TaskId::to_string).collect();
            _ = write!(line, "; after {}", ids.join(", "));
        }
        line.push(')');
        Some(line)
    }

    /// The tasks that fit: level by level.
    fn shown(&self, root: Option<TaskId>, max_chars: usize) -> HashSet<TaskId> {
        let mut shown = HashSet::new();
        let mut used = 0_usize;
        let mut depth = 0_usize;
        let mut level: Vec<TaskId> = match root {
            Some(id) => vec![id],
            None => self.children(None).take(max_chars).collect(),
        };
        while !level.is_empty() {
            for id in &level {
                let mut length = self.outline_line(*id).map_or(0, |line| line.chars().count()) + depth * 2 + 1;
                if self.child_count(Some(*id)) > 0 {
                    length += (depth + 1) * 2 + LEFT_OUT_CHARS;
                }
                used = used.saturating_add(length);
                if used.saturating_add(LEFT_OUT_CHARS) > max_chars {
                    return shown;
                }
                shown.insert(*id);
            }
            depth = depth.saturating_add(1);
            level = level.into_iter().flat_map(|id| self.children(Some(id))).take(max_chars).collect();
        }
        shown
    }

    fn push_children(
        &self,
        parent: Option<TaskId>,
        depth: usize,
        shown: &HashSet<TaskId>,
        stack: &mut Vec<(OutlineEntry, usize)>,
    ) {
        // Those that are shown come first: a level is filled in order.
        let fitting: Vec<TaskId> = self.children(parent).take_while(|id| shown.contains(id)).collect();
        let left_out = self.child_count(parent).saturating_sub(fitting.len());
        if left_out > 0 {
            stack.push((OutlineEntry::LeftOut(left_out), depth));
        }
        stack.extend(fitting.into_iter().rev().map(|id| (OutlineEntry::Task(id), depth)));
    }
}

enum OutlineEntry {
    Task(TaskId),
    LeftOut(usize),
}
