//! The model that turns ask: a provider's API, or a script in tests.

use std::sync::Arc;

use futures::future::BoxFuture;
use towline_provider::{Answer, Delta, ProviderError, Question};

use super::AcpSettings;
use super::rpc::Refusal;

/// Answers questions. Dropping the future cancels the question.
pub(super) trait Model: Send + Sync {
    /// Asks once. Pieces of the answer are reported as they arrive.
    fn ask<'a>(
        &'a self,
        question: &'a Question<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, ProviderError>>;
}

/// Creates the model of a session when the first one is opened, because setting up a client takes a moment.
pub(super) type MakeModel = Box<dyn Fn(&AcpSettings) -> Result<Arc<dyn Model>, Refusal> + Send + Sync>;
