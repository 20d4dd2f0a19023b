//! Detects parts of a script in the wrong list: a topic among actions, a phase among topics, a topic among phases.

use crate::message::message::Message;
use crate::message::msg;
use crate::script::fields::Fields;

/// The names of the parts, from the outermost to the innermost, with the fields that only they have.
const PARTS: [(&str, &[&str]); 3] =
    [("phase", &["phase_id"]), ("topic", &["topic_id"]), ("action", &["action_id", "action_type"])];

/// Reports an item that belongs in another list, and returns its kind. `what` is the kind of part in this list.
pub fn misplaced(fields: &Fields<'_>, what: &'static str) -> Option<&'static str> {
    let own = PARTS.iter().position(|(name, _)| *name == what)?;
    let is = |(_, keys): &&(&'static str, &[&str])| keys.iter().any(|key| fields.has(key));
    if PARTS.get(own).is_some_and(|part| is(&part)) {
        return None;
    }
    let (other, (name, keys)) = PARTS.iter().enumerate().find(|(_, part)| is(part))?;
    let entry = keys.iter().find_map(|key| fields.take_unknown(key))?;
    let key = entry.key.value.as_str();
    let an = if *name == "action" { "an" } else { "a" };
    let message = msg!(
        "found {an} {name} in a list of {what}s",
        an = Message::word(an),
        name = Message::word(name),
        what = Message::word(what)
    );
    let help = if other < own {
        msg!(
            "move all of it to the left, so that its `- {key}` is aligned with the other {name}s",
            name = Message::word(name)
        )
    } else if other == own + 1 {
        msg!(
            "move all of it to the right, so that its `- {key}` is aligned with the other {name}s",
            name = Message::word(name)
        )
    } else {
        msg!("{name}s belong in the `{name}s:` of a topic: move it there", name = Message::word(name))
    };
    fields.error("unknown-key", message, entry.key.span, help);
    Some(name)
}
