//! `finally` of topics: its actions run however the topic ends, and what was decided happens after them (docs/failures.md).

use crate::program::program::{Program, Topic};
use crate::run::draft::CommitDraft;
use crate::run::frames::{Frame, FrameTarget, ROOT, child, lineage, parent};
use crate::run::session::Session;
use crate::run::topic_exit::TopicExit;
use crate::run::transitions::SessionFailure;

/// The last component of the key of such a frame.
const FINALLY: &str = "=finally";

impl Session {
    /// Starts the `finally` of the topic that the session is in, before the session leaves it for `exit`. If it runs already, it goes
    /// on, and `exit` follows it. Returns whether it runs.
    pub(crate) fn enter_finally(&mut self, program: &Program, exit: TopicExit) -> bool {
        let leaf = self.frames.leaf();
        let is_topic = |key: &&str| self.frames.get(key).is_some_and(|frame| frame.at == FrameTarget::Topic);
        let Some(topic) = lineage(&leaf).find(is_topic).map(str::to_owned) else { return false };
        let key = child(&topic, FINALLY);
        if let Some(frame) = self.frames.change(&key) {
            frame.exit = Some(exit);
            return true;
        }
        let has_finally = self.topic_of_frame(program, &topic).is_some_and(|topic| !topic.finally.is_empty());
        if !has_finally || self.frames.get(&topic).is_none_or(|frame| frame.finally_begun) {
            return false;
        }
        self.unwind(&topic);
        if let Some(frame) = self.frames.change(&topic) {
            frame.finally_begun = true;
        }
        self.frames.put(key, Frame { at: FrameTarget::Finally, exit: Some(exit), ..Frame::default() });
        true
    }

    /// The topic of the frame `key`.
    pub(crate) fn topic_of_frame<'p>(&self, program: &'p Program, key: &str) -> Option<&'p Topic> {
        let phase = program.phases.get(self.frames.get(ROOT)?.next)?;
        phase.topics.get(self.frames.get(parent(key))?.next)
    }

    /// The `finally` with the frame `key` is over: the session leaves the topic, as was decided before.
    pub(crate) fn finally_done(
        &mut self,
        program: &Program,
        key: &str,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let topic = parent(key).to_owned();
        let exit = self.frames.remove(key).and_then(|frame| frame.exit);
        match exit {
            Some(TopicExit::Leave) | None => self.leave(&topic),
            Some(TopicExit::LeaveAll) => {
                self.leave(&topic);
                self.skip_elements(parent(&topic));
            }
            Some(TopicExit::SkipPhase) => self.leave_to(&topic, |at| *at == FrameTarget::Phase),
            Some(TopicExit::Goto(id)) => self.jump(program, &topic, &id, draft)?,
            Some(TopicExit::End) => self.end(program),
            Some(TopicExit::SessionEnds) => self.unwind(ROOT),
        }
        Ok(())
    }

    /// Skips the further elements of a topic that was left, by the frame of its phase.
    pub(crate) fn skip_elements(&mut self, phase: &str) {
        if self.frames.get(phase).is_some_and(|frame| frame.taken > 0) {
            self.next_child(phase);
        }
    }
}
