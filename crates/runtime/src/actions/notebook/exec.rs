//! `exec`: runs a code cell in the kernel of the session (docs/notebook.md).

use crate::actions::notebook::author_action::ActionReader;
use crate::actions::notebook::debug::{PROMPT, TEMPLATE, VERSION};
use crate::actions::notebook::kind::{NotebookKind, described};
use crate::program::action::Action;
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::prompt::PromptNames;
use bcc_lang::script::fields::Fields;
use bcc_lang::script::time::{ONE_DAY, time};

pub(crate) struct ExecKind;

impl Kind for ExecKind {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "exec",
            schema: include_str!("../../../../../schemas/actions/exec.json"),
            page: include_str!("../../../../../docs/actions/exec.md"),
            exits: &["exit_criteria_met", "failed"],
        }
    }

    fn prompt(&self) -> Option<PromptNames> {
        Some(PROMPT)
    }

    fn asks_first(&self) -> bool {
        false
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let mut reader = ActionReader::new(fields, checker);
        reader.required_text("codecell_id");
        reader.boolean("need_output");
        let auto_debug = reader.boolean("auto_debug") == Some(true);
        reader.boolean("keep_debug_button_visible");
        let timeout = time(fields, "timeout", ONE_DAY);
        let fail_on_error = fields.choice("on_error", &["continue", "fail"]) == Some("fail");
        if auto_debug {
            reader.checker.template(TEMPLATE, VERSION, PROMPT, fields);
        }
        let exits: Option<&[&str]> = (!fail_on_error).then_some(&["exit_criteria_met"]);
        reader.checker.describe(ActionProperties { exits, ..described(true) });
        let action = reader.finish(self.name())?;
        Some(Box::new(NotebookKind { action, timeout, fail_on_error, auto_debug }))
    }
}
