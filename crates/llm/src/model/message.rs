//! One message of what a model is sent: who says it, and its text.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The rules that the model works under.
    System,
    /// The one who asks; a template without role lines is one message of this role (docs/templates.md).
    User,
    /// What the model itself said earlier.
    Assistant,
}

/// One message of a prompt, in the shape in which chat models take it.
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
    fn a_message_has_the_shape_that_chat_models_take() {
        let messages = [(Role::System, "system"), (Role::User, "user"), (Role::Assistant, "assistant")];
        for (role, name) in messages {
            let message = ChatMessage { role, content: "您好".into() };
            let written = serde_json::to_value(&message).unwrap();
            assert_eq!(written, json!({ "role": name, "content": "您好" }));
            assert_eq!(serde_json::from_value::<ChatMessage>(written).unwrap(), message);
        }
    }
}
