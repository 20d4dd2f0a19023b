//! A notebook in memory that executes actions like a session, without one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bcc_runtime::notebook::action::{NotebookAction, Read, read};
use bcc_runtime::notebook::apply::{apply, apply_execution, target};
use bcc_runtime::notebook::cell::{Cell, CellEnd, CellKind};
use bcc_runtime::notebook::error::ActionRejection;
use bcc_runtime::notebook::kernel::contract::Execution;
use bcc_runtime::notebook::state::NotebookState;
use serde_json::{Map, Value, json};

pub(crate) const AT: &str = "2026-01-02T03:04:05Z";

/// The result that the kernel returns.
pub(crate) fn execution(value: &Value) -> Execution {
    Execution {
        outputs: value["outputs"].as_array().unwrap().clone(),
        execution_count: value["execution_count"].as_u64(),
        ended: serde_json::from_value(value["ended"].clone()).unwrap(),
        ms: 1,
        language: serde_json::Map::new(),
        is_interrupted_by_person: false,
        ignored_interrupt: false,
        lost_with_variables: None,
        is_queued: false,
        omitted_bytes: 0,
        variables: value["variables"].as_object().unwrap().clone(),
    }
}

#[derive(Default)]
pub(crate) struct Book {
    pub(crate) state: NotebookState,
    pub(crate) cells: BTreeMap<u64, Cell>,
    pub(crate) executions: VecDeque<Execution>,
    pub(crate) given_to_kernel: Vec<Cell>,
}

impl Book {
    /// The notebook that `before` describes; an empty one if it is null.
    pub(crate) fn from(before: &Value) -> Self {
        if before.is_null() {
            return Self::default();
        }
        let cells: Vec<Cell> = serde_json::from_value(before["cells"].clone()).unwrap();
        let state = serde_json::from_value(before["state"].clone()).unwrap();
        Self { state, cells: cells.into_iter().map(|cell| (cell.number, cell)).collect(), ..Self::default() }
    }

    pub(crate) fn act(&mut self, value: &Value) -> Result<Value, String> {
        self.try_act(value).map_err(|rejection| rejection.to_string())
    }

    pub(crate) fn try_act(&mut self, value: &Value) -> Result<Value, ActionRejection> {
        match read(value) {
            Ok(Read::Known(action)) => self.execute(&action),
            other => panic!("{value}: {other:?}"),
        }
    }

    pub(crate) fn execute(&mut self, action: &NotebookAction) -> Result<Value, ActionRejection> {
        let found = target(action, &self.state).and_then(|id| self.cells.values().find(|cell| cell.id == id).cloned());
        let change = apply(&mut self.state, action, found, AT)?;
        for cell in change.cells {
            self.cells.insert(cell.number, cell);
        }
        if let Some((cell, exec)) = change.run {
            self.given_to_kernel.push(cell.clone());
            let execution = self.executions.pop_front().unwrap_or(Execution {
                outputs: vec![],
                execution_count: Some(1),
                ended: CellEnd::Ok,
                ms: 0,
                language: serde_json::Map::new(),
                is_interrupted_by_person: false,
                ignored_interrupt: false,
                lost_with_variables: None,
                is_queued: false,
                omitted_bytes: 0,
                variables: Map::new(),
            });
            let cell = apply_execution(&mut self.state, cell, &exec, execution);
            self.cells.insert(cell.number, cell);
        }
        Ok(change.result)
    }

    /// The notebook in the JSON structure of the examples in `tests/notebook/`.
    pub(crate) fn view(&self) -> Value {
        let state = &self.state;
        let ids = |steps: Vec<&bcc_runtime::notebook::workflow::PlanStep>| -> Vec<String> {
            steps.into_iter().map(|step| step.id.clone()).collect()
        };
        let stages: Vec<_> = state.remaining_stages().into_iter().map(|stage| stage.id.clone()).collect();
        json!({
            "notebook": {
                "cells": self.cells.values().collect::<Vec<_>>(),
                "metadata": {"title": state.title},
                "chapter_count": state.chapter_count,
                "section_count": state.section_count,
            },
            "thinking_active": state.thinking.is_some(),
            "variables": state.kernel_variables.to_map(),
            "effects": state.effects,
            "FSM": state.fsm,
            "workflow": state.workflow,
            "section_progress": state.section_progress,
            "executed": state.executed,
            "last_output": state.last_output,
            "location": {
                "current": state.location,
                "completed_steps": state.location.completed_steps,
                "progress": {
                    "steps": {
                        "completed": ids(state.completed_steps_of_stage()),
                        "current": state.location.step_id,
                        "remaining": ids(state.remaining_steps()),
                    },
                    "stages": {
                        "completed": state.location.completed_stages,
                        "current": state.location.stage_id,
                        "remaining": stages,
                    },
                },
            },
        })
    }

    /// Checks the invariants of every notebook.
    pub(crate) fn check(&self) {
        let (state, cells) = (&self.state, &self.cells);
        assert_eq!(state.cell_count, cells.len() as u64, "cells are counted");
        assert!(cells.keys().copied().eq(1..=state.cell_count), "cells are numbered from 1 without gaps");
        let ids: BTreeSet<&str> = cells.values().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids.len(), cells.len(), "ids are unique");
        let kind = |id: &Option<String>| {
            id.as_ref().map(|id| cells.values().find(|cell| cell.id == *id).expect("a cell that is there").kind)
        };
        assert!(kind(&state.last_code_cell).is_none_or(|kind| kind == CellKind::Code));
        assert!(kind(&state.thinking).is_none_or(|kind| kind == CellKind::Thinking));
        assert!(kind(&state.title_cell).is_none_or(|kind| kind == CellKind::Markdown));
        let open = |cell: &&Cell| cell.kind == CellKind::Thinking && !cell.metadata.finished_thinking;
        let thinking: Vec<_> = cells.values().filter(open).map(|cell| cell.id.clone()).collect();
        assert_eq!(thinking, state.thinking.iter().cloned().collect::<Vec<_>>(), "one thought is open at most");
        let location = &state.location;
        assert_eq!(location.stage_id.is_some(), location.step_id.is_some());
        if location.step_id.is_some() {
            assert!(state.current_step().is_some(), "the current step is one of the plan");
        }
        assert!(location.step_id.as_ref().is_none_or(|step| !location.completed_steps.contains(step)));
        assert!(location.stage_id.as_ref().is_none_or(|stage| !location.completed_stages.contains(stage)));
        assert_eq!(BTreeSet::from_iter(&location.completed_steps).len(), location.completed_steps.len());
        assert!(state.workflow_pending.is_none() || state.behavior_is_open, "a plan waits for a behavior only");
        for plan in state.workflow.iter().chain(&state.workflow_pending) {
            plan.check().expect("plans hold together");
        }
    }
}
