//! How others end a turn.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use tokio::sync::Notify;

use crate::live::interrupted_turn::InterruptedTurn;

/// How a turn is ended before it ends by itself. The task of its session ends then as well.
#[derive(Default)]
pub(crate) struct TurnSignals {
    /// Another message takes the place of the one that the turn is about. A turn in which somebody decides goes on.
    pub(crate) interrupt: Notify,
    /// The session is erased.
    pub(crate) erase: Notify,
    /// Whether a turn was ended by one of these, or by another process.
    pub(crate) is_interrupted: AtomicBool,
    /// The turn that was ended for another message here, until whoever sent that takes the answer back.
    pub(super) interrupted_turn: Mutex<Option<InterruptedTurn>>,
}

/// Who ends a turn that runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// Another message here.
    Message,
    /// The session is erased.
    Erasure,
    OtherProcess,
}
