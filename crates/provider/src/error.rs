//! What can go wrong between us and a provider, in the same classes for all of them.

use jiff::Timestamp;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// What kind of trouble it is.
    pub class: ErrorClass,
    /// The status of the answer over HTTP, where there was one.
    pub status: Option<u16>,
    /// When to try again, where the provider announces it.
    pub until: Option<Timestamp>,
    /// What the provider reports, or what happened. Never holds the key.
    pub message: String,
}

/// The kinds of trouble, each with its own way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The credentials are refused, or the account has no money: a person is needed.
    Auth,
    /// A quota is used up.
    Limited,
    /// The conversation is longer than the model can read.
    Overflow,
    /// The provider failed, or is overloaded: worth another try.
    Server,
    /// There was no connection, or it broke: worth another try.
    Network,
    /// The answer broke off, or is none that can be read: worth another try.
    CutOff,
    /// The provider does not take the request as it is (400), most often because of the conversation so far: another try
    /// would end the same.
    Refused,
    /// The provider cannot be asked like this (no such model, a wrong address): another try would end the same.
    Invalid,
}
