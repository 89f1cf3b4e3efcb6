//! Whom the turns ask: a provider's API, or a script in tests.

use std::sync::Arc;

use futures::future::BoxFuture;
use towline_provider::{Answer, Delta, ProviderError, Question};

use super::AcpSettings;
use super::rpc::Refusal;

/// Answers questions. Whoever stops waiting ends the question.
pub(super) trait Model: Send + Sync {
    /// Asks once; pieces of the answer are told as they come.
    fn ask<'a>(
        &'a self,
        question: &'a Question<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, ProviderError>>;
}

/// Makes the model of a session, when the first one is opened: a client takes a moment to set up.
pub(super) type MakeModel = Box<dyn Fn(&AcpSettings) -> Result<Arc<dyn Model>, Refusal> + Send + Sync>;
