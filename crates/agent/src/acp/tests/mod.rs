//! What is expected of conversations with ACP agents.
