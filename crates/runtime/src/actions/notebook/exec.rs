//! `exec`: runs a code cell in the kernel of the session (docs/notebook.md).

use crate::actions::notebook::author_action::ActionReader;
use crate::actions::notebook::debug::{PROMPT, TEMPLATE, VERSION};
use crate::actions::notebook::kind::{NotebookKind, described};
use crate::program::action::Action;
use crate::program::kind::{Described, Kind, KindChecker, KindInfo};
use crate::program::prompt::PromptOf;
use bcc_lang::script::fields::Fields;
use bcc_lang::script::time::{A_DAY, time};

pub struct ExecKind;

impl Kind for ExecKind {
    fn about(&self) -> KindInfo {
        KindInfo {
            name: "exec",
            schema: include_str!("../../../../../schemas/actions/exec.json"),
            page: include_str!("../../../../../docs/actions/exec.md"),
            exits: &["exit_criteria_met", "failed"],
        }
    }

    fn prompt(&self) -> Option<PromptOf> {
        Some(PROMPT)
    }

    fn asks_first(&self) -> bool {
        false
    }

    fn check(&self, fields: &Fields<'_>, checking: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let mut reading = ActionReader::new(fields, checking);
        reading.required_text("codecell_id");
        reading.truth("need_output");
        let debugs = reading.truth("auto_debug") == Some(true);
        reading.truth("keep_debug_button_visible");
        let timeout = time(fields, "timeout", A_DAY);
        let fails = fields.choice("on_error", &["continue", "fail"]) == Some("fail");
        if debugs {
            reading.checking.template(TEMPLATE, VERSION, PROMPT, fields);
        }
        let exits: Option<&[&str]> = (!fails).then_some(&["exit_criteria_met"]);
        reading.checking.describe(Described { exits, ..described(true) });
        let written = reading.finish(self.name())?;
        Some(Box::new(NotebookKind { written, timeout, fails }))
    }
}
