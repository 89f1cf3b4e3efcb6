//! The agent as a process: a runtime with one thread, on standard input and output.

use std::io;
use std::sync::Arc;

use futures::future::BoxFuture;
use towline_provider::{Answer, Client, Delta, Endpoint, ProviderError, Question, Timeouts};

use super::AcpSettings;
use super::model::{MakeModel, Model};
use super::rpc::{AUTH_REQUIRED, Refusal};
use super::server::serve;

/// Serves on standard input and output until the input ends.
pub fn main(settings: AcpSettings) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(settings, provider(), tokio::io::stdin(), tokio::io::stdout()));
    // A pending read of the input must not delay the exit.
    runtime.shutdown_background();
    Ok(())
}

impl Model for Client {
    fn ask<'a>(
        &'a self,
        question: &'a Question<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, ProviderError>> {
        Box::pin(Self::ask(self, question, on_delta))
    }
}

fn provider() -> MakeModel {
    Box::new(|settings| {
        // A self-hosted server may need none.
        if settings.key.is_none() && settings.base_url.is_none() {
            let message = format!(
                "there is no key for {}: set {} in the environment, or name another variable with `key_env` of the agent (--key-env of `towline acp`)",
                settings.url(),
                settings.key_variable,
            );
            return Err(Refusal::new(AUTH_REQUIRED, message));
        }
        let (format, key) = (settings.format, settings.key.clone());
        let endpoint = Endpoint { format, base_url: settings.url().to_owned(), key };
        let connect = Timeouts::default().connect.min(settings.silence);
        let timeouts = Timeouts { connect, silence: settings.silence };
        Ok(Arc::new(Client::new(endpoint, timeouts)))
    })
}
