//! How a value becomes an argument of a message. `msg!` chooses between the two ways: what can become a message stays one, and
//! is translated with the message that it is in; all else is a text.

use std::fmt::Display;

use crate::message::message::Message;

/// What can become a message: an error, an enumeration of this program's own words.
pub trait ToMessage {
    /// The message that it is.
    fn to_message(&self) -> Message;
}

impl ToMessage for Message {
    fn to_message(&self) -> Message {
        self.clone()
    }
}

impl<T: ToMessage + ?Sized> ToMessage for &T {
    fn to_message(&self) -> Message {
        (**self).to_message()
    }
}

impl<T: ToMessage + ?Sized> ToMessage for Box<T> {
    fn to_message(&self) -> Message {
        (**self).to_message()
    }
}

impl<T: ToMessage + ?Sized> ToMessage for std::sync::Arc<T> {
    fn to_message(&self) -> Message {
        (**self).to_message()
    }
}

/// A value in an argument's place. `(&&MessageArgument(&value)).message()` takes [`OfMessage`] where it applies, else [`OfDisplay`],
/// since method lookup tries the receiver as it is before it dereferences it.
#[derive(Debug)]
pub struct MessageArgument<'a, T: ?Sized>(pub &'a T);

/// The way of a value that can become a message.
pub trait OfMessage {
    fn message(&self) -> Message;
}

impl<T: ToMessage + ?Sized> OfMessage for &MessageArgument<'_, T> {
    fn message(&self) -> Message {
        self.0.to_message()
    }
}

/// The way of all other values.
pub trait OfDisplay {
    fn message(&self) -> Message;
}

impl<T: Display + ?Sized> OfDisplay for MessageArgument<'_, T> {
    fn message(&self) -> Message {
        Message::text(self.0.to_string())
    }
}
