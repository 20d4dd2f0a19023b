//! The output of commands at a terminal while they run.

use std::collections::BTreeMap;

use bcc_lang::message::language::Language;
use bcc_runtime::notebook::export::ansi;
use bcc_runtime::program::event::Event;
use bcc_runtime::program::location::EventLocation;
use bcc_runtime::program::output_piece::OutputPiece;

/// Turns the output of running commands into lines.
#[derive(Debug, Default)]
pub struct CommandOutputView {
    /// The actions of the effects that are open.
    running: BTreeMap<String, String>,
}

impl CommandOutputView {
    pub fn committed(&mut self, event: &Event, place: &EventLocation) {
        match event {
            Event::EffectStarted { effect_id, .. } => {
                let action = place.action_id.clone().unwrap_or_default();
                self.running.insert(effect_id.clone(), action);
            }
            Event::EffectFinished { effect_id, .. } => _ = self.running.remove(effect_id),
            _ => {}
        }
    }

    /// The lines of a piece of output. While several commands run, each line names its action.
    pub fn lines(&self, output: &OutputPiece<'_>, language: Language) -> Vec<String> {
        let action = self.running.get(output.effect_id).filter(|_| self.running.len() > 1);
        let prefix = action.map_or_else(|| "  ".to_owned(), |action| format!("  {action}│ "));
        let count = output.left_out.to_string();
        let left_out =
            (output.left_out > 0).then(|| language.format("… {count} bytes are not shown here", &[("count", &count)]));
        let text = ansi::plain(output.text);
        left_out.into_iter().chain(text.lines().map(str::to_owned)).map(|line| format!("{prefix}{line}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_their_action_only_while_several_commands_run() {
        let mut view = CommandOutputView::default();
        let place = |action: &str| EventLocation { action_id: Some(action.into()), ..EventLocation::default() };
        let started =
            |id: &str| Event::EffectStarted { effect_id: id.into(), kind: "command".into(), summary: "s".into() };
        let ended =
            |id: &str| Event::EffectFinished { effect_id: id.into(), kind: "command".into(), summary: "s".into() };
        let lines = |view: &CommandOutputView, text: &str, left_out: u64| {
            let (location, at) = (EventLocation::default(), "");
            let piece = OutputPiece {
                at,
                session_id: "",
                r#type: "effect_output",
                cell_id: None,
                effect_id: "e1",
                stream: "stdout",
                text,
                left_out,
                location: &location,
            };
            view.lines(&piece, Language::English)
        };
        view.committed(&started("e1"), &place("build"));
        assert_eq!(lines(&view, "10%\r100%\n\u{1b}[31mred\u{1b}[0m\n", 0), ["  100%", "  red"]);
        view.committed(&started("e2"), &place("test"));
        assert_eq!(lines(&view, "a\n", 7), ["  build│ … 7 bytes are not shown here", "  build│ a"]);
        view.committed(&ended("e2"), &place("test"));
        assert_eq!(lines(&view, "b", 0), ["  b"]);
    }
}
