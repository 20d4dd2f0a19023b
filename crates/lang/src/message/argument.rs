//! Conversion of values to arguments of messages. A value that implements [`ToMessage`] stays a message and is translated with the
//! message that contains it; `msg!` converts any other value to text.

use std::fmt::Display;

use crate::message::message::Message;

/// A type that converts to a message: an error, or an enumeration of words of this program.
pub trait ToMessage {
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

/// A value used as an argument. `(&&MessageArgument(&value)).message()` uses [`ViaMessage`] if it applies, else [`ViaDisplay`],
/// because method lookup tries the receiver itself before it dereferences it.
#[derive(Debug)]
pub struct MessageArgument<'a, T: ?Sized>(pub &'a T);

/// Conversion of a value that implements [`ToMessage`].
pub trait ViaMessage {
    fn message(&self) -> Message;
}

impl<T: ToMessage + ?Sized> ViaMessage for &MessageArgument<'_, T> {
    fn message(&self) -> Message {
        self.0.to_message()
    }
}

/// Conversion of all other values.
pub trait ViaDisplay {
    fn message(&self) -> Message;
}

impl<T: Display + ?Sized> ViaDisplay for MessageArgument<'_, T> {
    fn message(&self) -> Message {
        Message::text(self.0.to_string())
    }
}
