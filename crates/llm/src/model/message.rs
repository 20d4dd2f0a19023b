//! One message of a prompt: its role and its text.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions for the model.
    System,
    /// Input for the model. A template without role lines is one message of this role (docs/templates.md).
    User,
    /// An earlier reply of the model.
    Assistant,
}

/// One message of a prompt, in the format of chat models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    pub role: Role,
    pub content: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_message_serializes_in_the_format_of_chat_models() {
        let messages = [(Role::System, "system"), (Role::User, "user"), (Role::Assistant, "assistant")];
        for (role, name) in messages {
            let message = ChatMessage { role, content: "您好".into() };
            let serialized = serde_json::to_value(&message).unwrap();
            assert_eq!(serialized, json!({ "role": name, "content": "您好" }));
            assert_eq!(serde_json::from_value::<ChatMessage>(serialized).unwrap(), message);
        }
    }
}
